/* Device memory that is used again.
 *
 * vkd3d takes memory from the driver for each buffer, and DirectML's provider makes some four buffers a session.
 * NVIDIA's driver takes 0.2 milliseconds to allocate and as much to free, under a lock that all processes share: with
 * four workers it was a quarter of the sessions' time. What vkd3d frees is kept here and given out again where size
 * and type are the same.
 *
 * New memory is zero. So is memory that is given out again, lest a kernel that writes nothing find the right answer of
 * an earlier session there: the processor clears it where it maps it first, else the device ahead of the next
 * submission. That orders the two only on one queue, so memory is no longer used again once a second queue works.
 */
#include <string.h>

#include "hooks.h"

#define MOST_KEPT (64 << 20)   /* bytes, in all */
#define LARGEST_KEPT (4 << 20) /* bytes, of one piece */
#define BUCKETS 1024
#define MOST_UNCLEARED 256
#define MOST_COMMANDS 64

/* A piece of memory in use or kept. whole: a buffer over all of it, made when it is given out again; cleared_at: the
 * value of `vk.done` after which the device has cleared it. */
struct piece
{
    VkDeviceMemory memory;
    VkDeviceSize size;
    uint32_t type;
    VkBuffer whole;
    uint64_t cleared_at;
    BOOL mapped, uncleared;
    struct piece *next;
};

static struct
{
    VkDevice device;
    PFN_vkAllocateMemory allocate;
    PFN_vkFreeMemory free;
    PFN_vkMapMemory map;
    PFN_vkUnmapMemory unmap;
    PFN_vkGetDeviceQueue get_queue;
    PFN_vkCreateBuffer create_buffer;
    PFN_vkDestroyBuffer destroy_buffer;
    PFN_vkGetBufferMemoryRequirements requirements;
    PFN_vkBindBufferMemory bind;
    PFN_vkCreateCommandPool create_pool;
    PFN_vkAllocateCommandBuffers allocate_commands;
    PFN_vkBeginCommandBuffer begin;
    PFN_vkEndCommandBuffer end;
    PFN_vkCmdFillBuffer fill;
    PFN_vkCmdPipelineBarrier barrier;
    PFN_vkCreateSemaphore create_semaphore;
    PFN_vkWaitSemaphoresKHR wait;
    VkSemaphore done;
}
vk;

static SRWLOCK lock = SRWLOCK_INIT;
static struct piece *in_use[BUCKETS], *kept[BUCKETS];
static VkDeviceSize kept_bytes;
static struct piece *uncleared[MOST_UNCLEARED];
static uint32_t uncleared_count;
static BOOL off; /* memory is no longer used again */

/* The queue that works, its family, and the commands that clear: those of number n are free when `vk.done` is n. */
static VkQueue worker;
static struct { VkQueue queue; uint32_t family; } queues[16];
static uint32_t queue_count;
static VkCommandBuffer commands[MOST_COMMANDS];
static uint64_t submitted;

static struct piece **bucket_of(VkDeviceMemory memory)
{
    return &in_use[((uintptr_t)memory >> 4) % BUCKETS];
}

static struct piece **shelf(VkDeviceSize size, uint32_t type)
{
    return &kept[(size / 4096 * 31 + type) % BUCKETS];
}

static struct piece *find(VkDeviceMemory memory)
{
    struct piece *piece = *bucket_of(memory);

    while (piece && piece->memory != memory)
        piece = piece->next;
    return piece;
}

/* Wait until the device has done what was submitted as `value`. */
static void wait_until_done(uint64_t value)
{
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1};

    info.pSemaphores = &vk.done;
    info.pValues = &value;
    value = min(value, submitted);
    if (value)
        vk.wait(vk.device, &info, ~(uint64_t)0);
}

static void forget_uncleared(struct piece *piece)
{
    uint32_t i;

    for (i = 0; piece->uncleared && i < uncleared_count; ++i)
    {
        if (uncleared[i] != piece)
            continue;
        uncleared[i] = uncleared[--uncleared_count];
        piece->uncleared = FALSE;
    }
}

/* Give a piece back to the driver. */
static void release(struct piece *piece)
{
    forget_uncleared(piece);
    wait_until_done(piece->cleared_at);
    if (piece->whole)
        vk.destroy_buffer(vk.device, piece->whole, NULL);
    vk.free(vk.device, piece->memory, NULL);
    free(piece);
}

static void release_kept(void)
{
    struct piece *piece;
    uint32_t i;

    for (i = 0; i < BUCKETS; ++i)
    {
        while ((piece = kept[i]))
        {
            kept[i] = piece->next;
            release(piece);
        }
    }
    kept_bytes = 0;
}

/* A buffer over the whole piece, for the device to clear it; FALSE where the driver has none of this size and type. */
static BOOL make_whole(struct piece *piece)
{
    VkBufferCreateInfo info =
    {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = piece->size,
        .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    };
    VkMemoryRequirements needed;

    if (piece->whole)
        return TRUE;
    if (vk.create_buffer(vk.device, &info, NULL, &piece->whole) < 0)
        return FALSE;
    vk.requirements(vk.device, piece->whole, &needed);
    if (needed.size <= piece->size && (needed.memoryTypeBits & (1u << piece->type))
            && vk.bind(vk.device, piece->whole, piece->memory, 0) >= 0)
        return TRUE;
    vk.destroy_buffer(vk.device, piece->whole, NULL);
    piece->whole = VK_NULL_HANDLE;
    return FALSE;
}

/* See that a piece is zero before the device or the processor works on it next; FALSE where that cannot be done. */
static BOOL clear_next(struct piece *piece)
{
    if (uncleared_count == MOST_UNCLEARED || !make_whole(piece))
        return FALSE;
    piece->uncleared = TRUE;
    uncleared[uncleared_count++] = piece;
    return TRUE;
}

static struct piece *take_kept(VkDeviceSize size, uint32_t type)
{
    struct piece **at = shelf(size, type), *piece;

    while ((piece = *at) && (piece->size != size || piece->type != type))
        at = &piece->next;
    if (!piece)
        return NULL;
    *at = piece->next;
    kept_bytes -= size;
    if (clear_next(piece))
        return piece;
    release(piece);
    return NULL;
}

static VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo *info,
        const VkAllocationCallbacks *allocator, VkDeviceMemory *memory)
{
    struct piece *piece = NULL;
    VkResult result = VK_SUCCESS;

    if (device != vk.device || info->pNext || info->allocationSize > LARGEST_KEPT)
        return vk.allocate(device, info, allocator, memory);
    AcquireSRWLockExclusive(&lock);
    if (!off && !(piece = take_kept(info->allocationSize, info->memoryTypeIndex)))
    {
        if ((result = vk.allocate(device, info, allocator, memory)) >= 0 && (piece = calloc(1, sizeof(*piece))))
        {
            piece->memory = *memory;
            piece->size = info->allocationSize;
            piece->type = info->memoryTypeIndex;
        }
    }
    else if (off)
    {
        result = vk.allocate(device, info, allocator, memory);
    }
    if (piece)
    {
        *memory = piece->memory;
        piece->next = *bucket_of(piece->memory);
        *bucket_of(piece->memory) = piece;
    }
    ReleaseSRWLockExclusive(&lock);
    return result;
}

static void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks *allocator)
{
    struct piece **at, *piece;

    AcquireSRWLockExclusive(&lock);
    for (at = bucket_of(memory); (piece = *at) && piece->memory != memory; at = &piece->next) {}
    if (!piece || device != vk.device)
    {
        vk.free(device, memory, allocator);
        ReleaseSRWLockExclusive(&lock);
        return;
    }
    *at = piece->next;
    if (piece->mapped)
        vk.unmap(device, memory);
    piece->mapped = FALSE;
    if (off || kept_bytes + piece->size > MOST_KEPT)
    {
        release(piece);
    }
    else
    {
        forget_uncleared(piece);
        piece->next = *shelf(piece->size, piece->type);
        *shelf(piece->size, piece->type) = piece;
        kept_bytes += piece->size;
    }
    ReleaseSRWLockExclusive(&lock);
}

static VkResult VKAPI_CALL map_memory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size,
        VkMemoryMapFlags flags, void **bytes)
{
    VkResult result = VK_SUCCESS;
    struct piece *piece;

    AcquireSRWLockExclusive(&lock);
    if ((piece = find(memory)))
    {
        wait_until_done(piece->cleared_at);
        if (piece->uncleared && (result = vk.map(device, memory, 0, VK_WHOLE_SIZE, 0, bytes)) >= 0)
        {
            memset(*bytes, 0, piece->size);
            vk.unmap(device, memory);
            forget_uncleared(piece);
        }
    }
    if (result >= 0 && (result = vk.map(device, memory, offset, size, flags, bytes)) >= 0 && piece)
        piece->mapped = TRUE;
    ReleaseSRWLockExclusive(&lock);
    return result;
}

static void VKAPI_CALL unmap_memory(VkDevice device, VkDeviceMemory memory)
{
    struct piece *piece;

    AcquireSRWLockExclusive(&lock);
    vk.unmap(device, memory);
    if ((piece = find(memory)))
        piece->mapped = FALSE;
    ReleaseSRWLockExclusive(&lock);
}

static void VKAPI_CALL get_queue(VkDevice device, uint32_t family, uint32_t index, VkQueue *queue)
{
    vk.get_queue(device, family, index, queue);
    if (device != vk.device || queue_count == COUNT(queues))
        return;
    queues[queue_count].queue = *queue;
    queues[queue_count++].family = family;
}

/* Commands for this queue and the semaphore that says which are done; FALSE where they cannot be made. */
static BOOL make_commands(VkQueue queue)
{
    VkSemaphoreTypeCreateInfo type =
    {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    VkCommandPoolCreateInfo pool =
    {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
    };
    VkCommandBufferAllocateInfo info =
    {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = MOST_COMMANDS,
    };
    uint32_t i;

    for (i = 0; i < queue_count && queues[i].queue != queue; ++i) {}
    if (i == queue_count)
        return FALSE;
    pool.queueFamilyIndex = queues[i].family;
    if (vk.create_semaphore(vk.device, &semaphore, NULL, &vk.done) < 0
            || vk.create_pool(vk.device, &pool, NULL, &info.commandPool) < 0
            || vk.allocate_commands(vk.device, &info, commands) < 0)
        return FALSE;
    worker = queue;
    return TRUE;
}

static BOOL record_clearing(VkCommandBuffer buffer)
{
    static const VkCommandBufferBeginInfo once =
    {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    static const VkMemoryBarrier before =
    {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
    };
    static const VkMemoryBarrier after =
    {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
    };
    uint32_t i;

    if (vk.begin(buffer, &once) < 0)
        return FALSE;
    vk.barrier(buffer, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &before, 0, NULL, 0, NULL);
    for (i = 0; i < uncleared_count; ++i)
    {
        vk.fill(buffer, uncleared[i]->whole, 0, VK_WHOLE_SIZE, 0);
        uncleared[i]->uncleared = FALSE;
        uncleared[i]->cleared_at = submitted + 1;
    }
    uncleared_count = 0;
    vk.barrier(buffer, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &after, 0, NULL, 0, NULL);
    return vk.end(buffer) >= 0;
}

static BOOL submit_clearing(VkQueue queue, PFN_vkQueueSubmit submit)
{
    VkCommandBuffer buffer = commands[submitted % MOST_COMMANDS];
    uint64_t value = submitted + 1;
    VkTimelineSemaphoreSubmitInfo values =
    {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value,
    };
    VkSubmitInfo batch =
    {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .commandBufferCount = 1,
        .pCommandBuffers = &buffer,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &vk.done,
    };

    if (submitted >= MOST_COMMANDS)
        wait_until_done(submitted + 1 - MOST_COMMANDS);
    if (!record_clearing(buffer) || submit(queue, 1, &batch, VK_NULL_HANDLE) < 0)
        return FALSE;
    ++submitted;
    return TRUE;
}

/* Stop using memory again: what is kept goes back to the driver. */
static void stop(void)
{
    off = TRUE;
    release_kept();
}

void begin_submission(VkQueue queue, PFN_vkQueueSubmit submit)
{
    AcquireSRWLockExclusive(&lock);
    if (off || !uncleared_count)
        return;
    if (!(worker || make_commands(queue)) || !submit_clearing(worker, submit))
    {
        stop();
    }
    else if (queue != worker)
    {
        wait_until_done(submitted);
        stop();
    }
}

void end_submission(void)
{
    ReleaseSRWLockExclusive(&lock);
}

PFN_vkVoidFunction memory_function(const struct hooked *hooked, const char *name, PFN_vkVoidFunction found)
{
    const struct hook taken[] =
    {
        {"vkAllocateMemory", (PFN_vkVoidFunction *)&vk.allocate, (PFN_vkVoidFunction)allocate_memory},
        {"vkFreeMemory", (PFN_vkVoidFunction *)&vk.free, (PFN_vkVoidFunction)free_memory},
        {"vkMapMemory", (PFN_vkVoidFunction *)&vk.map, (PFN_vkVoidFunction)map_memory},
        {"vkUnmapMemory", (PFN_vkVoidFunction *)&vk.unmap, (PFN_vkVoidFunction)unmap_memory},
        {"vkGetDeviceQueue", (PFN_vkVoidFunction *)&vk.get_queue, (PFN_vkVoidFunction)get_queue},
    };

    if (!vk.device)
    {
        vk.device = hooked->device;
#define GET(member, name) vk.member = (PFN_##name)hooked->get(hooked->device, #name)
        GET(create_buffer, vkCreateBuffer);
        GET(destroy_buffer, vkDestroyBuffer);
        GET(requirements, vkGetBufferMemoryRequirements);
        GET(bind, vkBindBufferMemory);
        GET(create_pool, vkCreateCommandPool);
        GET(allocate_commands, vkAllocateCommandBuffers);
        GET(begin, vkBeginCommandBuffer);
        GET(end, vkEndCommandBuffer);
        GET(fill, vkCmdFillBuffer);
        GET(barrier, vkCmdPipelineBarrier);
        GET(create_semaphore, vkCreateSemaphore);
        GET(wait, vkWaitSemaphoresKHR);
#undef GET
        off = !vk.wait;
    }
    return take(taken, COUNT(taken), name, found);
}
