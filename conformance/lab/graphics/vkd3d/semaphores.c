/* Timeline semaphores that are used again.
 *
 * DirectML's provider makes two or three fences for a session. NVIDIA's driver takes half a millisecond to make a
 * semaphore and as much to destroy one, under a lock that all processes share: 15 percent of the sessions' time on an
 * H200 with four workers. A semaphore that vkd3d destroys is kept here and given out again: its counter cannot go
 * back, so the values that vkd3d names are counted from where the counter stands.
 */
#include <string.h>

#include "hooks.h"

#define MOST_SEMAPHORES 8 /* of one submission; vkd3d names one */

/* What vkd3d holds as a VkSemaphore. offset: from vkd3d's values to the driver's; highest: the last value, of the
 * driver's, that anything was told to signal; first: the one that vkd3d's initial value stands for. A submission of the
 * semaphore's former life may still be under way: the driver's counter is below `first` until it ends. */
struct semaphore
{
    VkSemaphore real;
    uint64_t offset, highest, first;
    BOOL timeline;
    struct semaphore *next;
};

static struct semaphore *idle;
static SRWLOCK lock = SRWLOCK_INIT;
static struct
{
    PFN_vkCreateSemaphore create;
    PFN_vkDestroySemaphore destroy;
    PFN_vkQueueSubmit submit;
    PFN_vkWaitSemaphoresKHR wait;
    PFN_vkSignalSemaphoreKHR signal;
    PFN_vkGetSemaphoreCounterValueKHR counter;
}
vk;

static struct semaphore *of(VkSemaphore semaphore)
{
    return (struct semaphore *)semaphore;
}

static const VkSemaphoreTypeCreateInfo *timeline(const VkSemaphoreCreateInfo *info)
{
    const VkSemaphoreTypeCreateInfo *type = info->pNext;

    return type && type->sType == VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO && !type->pNext
            && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE ? type : NULL;
}

static struct semaphore *take_idle(void)
{
    struct semaphore *semaphore;

    AcquireSRWLockExclusive(&lock);
    if ((semaphore = idle))
        idle = semaphore->next;
    ReleaseSRWLockExclusive(&lock);
    return semaphore;
}

static VkResult VKAPI_CALL create_semaphore(VkDevice device, const VkSemaphoreCreateInfo *info,
        const VkAllocationCallbacks *allocator, VkSemaphore *made)
{
    const VkSemaphoreTypeCreateInfo *type = timeline(info);
    struct semaphore *semaphore = type ? take_idle() : NULL;
    VkResult result;

    if (!semaphore)
    {
        if (!(semaphore = calloc(1, sizeof(*semaphore))))
            return VK_ERROR_OUT_OF_HOST_MEMORY;
        if ((result = vk.create(device, info, allocator, &semaphore->real)) < 0)
        {
            free(semaphore);
            return result;
        }
        semaphore->timeline = type != NULL;
        semaphore->highest = type ? type->initialValue : 0;
    }
    semaphore->first = semaphore->highest;
    semaphore->offset = type ? semaphore->first - type->initialValue : 0;
    *made = (VkSemaphore)semaphore;
    return VK_SUCCESS;
}

static void VKAPI_CALL destroy_semaphore(VkDevice device, VkSemaphore handle, const VkAllocationCallbacks *allocator)
{
    struct semaphore *semaphore = of(handle);

    if (!semaphore)
        return;
    if (!semaphore->timeline)
    {
        vk.destroy(device, semaphore->real, allocator);
        free(semaphore);
        return;
    }
    AcquireSRWLockExclusive(&lock);
    semaphore->next = idle;
    idle = semaphore;
    ReleaseSRWLockExclusive(&lock);
}

static void note_signal(struct semaphore *semaphore, uint64_t value)
{
    AcquireSRWLockExclusive(&lock);
    semaphore->highest = max(semaphore->highest, value);
    ReleaseSRWLockExclusive(&lock);
}

/* One batch, its semaphores and their values replaced by the driver's. */
static VkResult submit_batch(VkQueue queue, const VkSubmitInfo *batch, VkFence fence)
{
    const VkTimelineSemaphoreSubmitInfo *values = batch->pNext;
    uint64_t waited[MOST_SEMAPHORES] = {0}, signalled[MOST_SEMAPHORES] = {0};
    VkSemaphore waits[MOST_SEMAPHORES], signals[MOST_SEMAPHORES];
    VkTimelineSemaphoreSubmitInfo real_values;
    VkSubmitInfo real = *batch;
    uint32_t i;

    if (values && values->sType != VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO)
        values = NULL;
    if (batch->waitSemaphoreCount > MOST_SEMAPHORES || batch->signalSemaphoreCount > MOST_SEMAPHORES)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    for (i = 0; i < batch->waitSemaphoreCount; ++i)
    {
        waits[i] = of(batch->pWaitSemaphores[i])->real;
        if (values && i < values->waitSemaphoreValueCount)
            waited[i] = values->pWaitSemaphoreValues[i] + of(batch->pWaitSemaphores[i])->offset;
    }
    for (i = 0; i < batch->signalSemaphoreCount; ++i)
    {
        signals[i] = of(batch->pSignalSemaphores[i])->real;
        if (!values || i >= values->signalSemaphoreValueCount)
            continue;
        signalled[i] = values->pSignalSemaphoreValues[i] + of(batch->pSignalSemaphores[i])->offset;
        note_signal(of(batch->pSignalSemaphores[i]), signalled[i]);
    }
    if (values)
    {
        real_values = *values;
        real_values.pWaitSemaphoreValues = waited;
        real_values.pSignalSemaphoreValues = signalled;
        real.pNext = &real_values;
    }
    real.pWaitSemaphores = waits;
    real.pSignalSemaphores = signals;
    return vk.submit(queue, 1, &real, fence);
}

static VkResult VKAPI_CALL queue_submit(VkQueue queue, uint32_t count, const VkSubmitInfo *batches, VkFence fence)
{
    VkResult result = count ? VK_SUCCESS : vk.submit(queue, 0, NULL, fence);
    BOOL works = FALSE;
    uint32_t i;

    for (i = 0; i < count; ++i)
        works = works || batches[i].commandBufferCount;
    if (works)
        begin_submission(queue, vk.submit);
    for (i = 0; i < count && result >= 0; ++i)
        result = submit_batch(queue, &batches[i], i + 1 < count ? VK_NULL_HANDLE : fence);
    if (works)
        end_submission();
    return result;
}

static VkResult VKAPI_CALL wait_semaphores(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
    VkSemaphore semaphores[MOST_SEMAPHORES];
    uint64_t values[MOST_SEMAPHORES];
    VkSemaphoreWaitInfo real = *info;
    uint32_t i;

    if (info->semaphoreCount > MOST_SEMAPHORES)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    for (i = 0; i < info->semaphoreCount; ++i)
    {
        semaphores[i] = of(info->pSemaphores[i])->real;
        values[i] = info->pValues[i] + of(info->pSemaphores[i])->offset;
    }
    real.pSemaphores = semaphores;
    real.pValues = values;
    return vk.wait(device, &real, timeout);
}

static VkResult VKAPI_CALL signal_semaphore(VkDevice device, const VkSemaphoreSignalInfo *info)
{
    VkSemaphoreSignalInfo real = *info;

    real.semaphore = of(info->semaphore)->real;
    real.value += of(info->semaphore)->offset;
    note_signal(of(info->semaphore), real.value);
    return vk.signal(device, &real);
}

static VkResult VKAPI_CALL counter_value(VkDevice device, VkSemaphore semaphore, uint64_t *value)
{
    VkResult result = vk.counter(device, of(semaphore)->real, value);

    *value = max(*value, of(semaphore)->first) - of(semaphore)->offset;
    return result;
}

PFN_vkVoidFunction semaphore_function(const struct hooked *hooked, const char *name, PFN_vkVoidFunction found)
{
    const struct hook taken[] =
    {
        {"vkCreateSemaphore", (PFN_vkVoidFunction *)&vk.create, (PFN_vkVoidFunction)create_semaphore},
        {"vkDestroySemaphore", (PFN_vkVoidFunction *)&vk.destroy, (PFN_vkVoidFunction)destroy_semaphore},
        {"vkQueueSubmit", (PFN_vkVoidFunction *)&vk.submit, (PFN_vkVoidFunction)queue_submit},
        {"vkWaitSemaphoresKHR", (PFN_vkVoidFunction *)&vk.wait, (PFN_vkVoidFunction)wait_semaphores},
        {"vkSignalSemaphoreKHR", (PFN_vkVoidFunction *)&vk.signal, (PFN_vkVoidFunction)signal_semaphore},
        {"vkGetSemaphoreCounterValueKHR", (PFN_vkVoidFunction *)&vk.counter, (PFN_vkVoidFunction)counter_value},
    };

    (void)hooked;
    return take(taken, COUNT(taken), name, found);
}
