/* Compiled pipelines that outlive a process.
 *
 * A worker makes some hundred compute pipelines, and a driver takes some ten milliseconds for each, however often
 * other processes have made the same one. vkd3d gives the driver no cache for them: here it gets one that begins with
 * the content of a file, to which a thread adds what is new while nothing is made. The driver itself checks that the
 * content is its own, and the file's name has the identity of the device and its driver.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hooks.h"

#define PAUSE 1500                 /* milliseconds between a pipeline and the look at what is new */
#define LARGEST_FILE (256 << 20)   /* bytes */

static struct
{
    VkDevice device;
    PFN_vkCreatePipelineCache create;
    PFN_vkDestroyPipelineCache destroy;
    PFN_vkGetPipelineCacheData data;
    PFN_vkMergePipelineCaches merge;
    PFN_vkCreateComputePipelines create_compute;
}
vk;

static char path[MAX_PATH];
static VkPipelineCache cache;
static volatile LONG made, kept;
static HANDLE news;

/* The file's content, or NULL; the caller frees it. */
static void *read_file(size_t *size)
{
    FILE *file = fopen(path, "rb");
    void *content = NULL;
    long end;

    *size = 0;
    if (!file)
        return NULL;
    if (!fseek(file, 0, SEEK_END) && (end = ftell(file)) > 0 && end <= LARGEST_FILE && (content = malloc(end)))
    {
        rewind(file);
        *size = fread(content, 1, end, file);
    }
    fclose(file);
    return content;
}

/* A cache with the content of the file. */
static VkResult create_from_file(VkPipelineCache *created)
{
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    void *content = read_file(&info.initialDataSize);
    VkResult result;

    info.pInitialData = content;
    result = vk.create(vk.device, &info, NULL, created);
    free(content);
    return result;
}

static void write_file(VkPipelineCache from)
{
    char temporary[MAX_PATH + 16];
    size_t size = 0;
    void *content;
    FILE *file;
    BOOL whole;

    if (vk.data(vk.device, from, &size, NULL) < 0 || !size || size > LARGEST_FILE || !(content = malloc(size)))
        return;
    snprintf(temporary, sizeof(temporary), "%s.%lu", path, GetCurrentProcessId());
    if (vk.data(vk.device, from, &size, content) >= 0 && (file = fopen(temporary, "wb")))
    {
        whole = fwrite(content, 1, size, file) == size;
        whole = !fclose(file) && whole;
        if (!whole || !MoveFileExA(temporary, path, MOVEFILE_REPLACE_EXISTING))
            DeleteFileA(temporary);
    }
    free(content);
}

/* Add what this process has made to what the file has by now. Two processes that do so at once lose what one added,
 * which is then made again. */
static void keep(void)
{
    VkPipelineCache all;

    if (create_from_file(&all) < 0)
        return;
    if (vk.merge(vk.device, all, 1, &cache) >= 0)
        write_file(all);
    vk.destroy(vk.device, all, NULL);
}

static DWORD WINAPI keep_what_is_new(void *unused)
{
    LONG seen;

    (void)unused;
    while (WaitForSingleObject(news, INFINITE) == WAIT_OBJECT_0)
    {
        do
        {
            seen = made;
            Sleep(PAUSE);
        }
        while (seen != made);
        if (kept == seen)
            continue;
        kept = seen;
        keep();
    }
    return 0;
}

/* Make the cache and start the thread that keeps it. */
static void begin(void)
{
    if (create_from_file(&cache) < 0)
        cache = VK_NULL_HANDLE;
    else if ((news = CreateEventA(NULL, FALSE, FALSE, NULL)))
        CloseHandle(CreateThread(NULL, 0, keep_what_is_new, NULL, 0, NULL));
}

static VkResult VKAPI_CALL create_compute(VkDevice device, VkPipelineCache in, uint32_t count,
        const VkComputePipelineCreateInfo *infos, const VkAllocationCallbacks *allocator, VkPipeline *pipelines)
{
    static BOOL begun;
    VkResult result;

    if (!begun)
        begin();
    begun = TRUE;
    result = vk.create_compute(device, in ? in : cache, count, infos, allocator, pipelines);
    if (!in && cache)
    {
        InterlockedIncrement(&made);
        SetEvent(news);
    }
    return result;
}

PFN_vkVoidFunction pipeline_function(const struct hooked *hooked, const char *name, PFN_vkVoidFunction found)
{
    const struct hook taken[] =
    {
        {"vkCreateComputePipelines", (PFN_vkVoidFunction *)&vk.create_compute, (PFN_vkVoidFunction)create_compute},
    };
    const char *folder = getenv("EPCHECK_PIPELINES");
    size_t i, end;

    if (!folder)
        return found;
    if (!vk.device)
    {
        vk.device = hooked->device;
        vk.create = (PFN_vkCreatePipelineCache)hooked->get(hooked->device, "vkCreatePipelineCache");
        vk.destroy = (PFN_vkDestroyPipelineCache)hooked->get(hooked->device, "vkDestroyPipelineCache");
        vk.data = (PFN_vkGetPipelineCacheData)hooked->get(hooked->device, "vkGetPipelineCacheData");
        vk.merge = (PFN_vkMergePipelineCaches)hooked->get(hooked->device, "vkMergePipelineCaches");
        end = snprintf(path, sizeof(path) - 2 * VK_UUID_SIZE - 1, "%s\\pipelines-", folder);
        for (i = 0; i < VK_UUID_SIZE && end < sizeof(path) - 2 * VK_UUID_SIZE - 1; ++i)
            end += sprintf(path + end, "%02x", hooked->properties.pipelineCacheUUID[i]);
    }
    return take(taken, COUNT(taken), name, found);
}
