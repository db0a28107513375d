/* Vulkan functions that vkd3d does not call directly: what stands in their place, and what that needs to know.
 *
 * Each part takes the functions that concern it: `..._function` gives what vkd3d is to call in place of `found`, which
 * may be `found` itself. A process makes one Direct3D 12 device; where it makes another, that one is left alone.
 */
#ifndef EPCHECK_HOOKS_H
#define EPCHECK_HOOKS_H

#include "wine/vulkan.h"
#include "d3d12.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* What is hooked: the first device of the process. A software driver, which is quick at what the hooks avoid and
 * makes memory of each piece that is used after it was freed visible, is left alone unless EPCHECK_HOOK_SOFTWARE is
 * set, as tests do. */
struct hooked
{
    VkDevice device;
    VkPhysicalDeviceProperties properties;
    PFN_vkGetDeviceProcAddr get;
};

PFN_vkVoidFunction semaphore_function(const struct hooked *hooked, const char *name, PFN_vkVoidFunction found);
PFN_vkVoidFunction memory_function(const struct hooked *hooked, const char *name, PFN_vkVoidFunction found);
PFN_vkVoidFunction pipeline_function(const struct hooked *hooked, const char *name, PFN_vkVoidFunction found);

/* Around each submission of work to a queue. No two run at the same time. */
void begin_submission(VkQueue queue, PFN_vkQueueSubmit submit);
void end_submission(void);

/* Have threads that ask a fence of this device for its value, over and over, sleep in between. */
void pause_between_questions(ID3D12Device *device);

/* A function of the driver, where to remember it, and what vkd3d calls in its place. */
struct hook
{
    const char *name;
    PFN_vkVoidFunction *real, ours;
};

PFN_vkVoidFunction take(const struct hook *hooks, size_t count, const char *name, PFN_vkVoidFunction found);

#endif
