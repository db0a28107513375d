/* What is added to Wine's vkd3d when it is rebuilt: one export that makes a Direct3D 12 device, as Wine's d3d12.dll
 * does in d3d12_main.c, on the adapter with this LUID and through the process's vulkan-1.dll. The functions of Vulkan
 * that vkd3d then asks for are hooked: see hooks.h.
 *
 * vkd3d's layouts of descriptor sets have as many descriptors as the driver allows, a million on lavapipe, which takes
 * the memory of all of them for each heap that DirectML makes, clears it, and spends 0.3 seconds on each. No heap of
 * DirectML's comes near MOST_DESCRIPTORS, so no layout has more.
 */
#define COBJMACROS
#include <stdlib.h>
#include <string.h>

#include "hooks.h"
#include "vkd3d.h"

#define MOST_DESCRIPTORS 65536

static struct
{
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    PFN_vkGetDeviceProcAddr get_device_proc_addr;
    PFN_vkGetPhysicalDeviceProperties properties;
    PFN_vkCreateDevice create_device;
    PFN_vkCreateDescriptorSetLayout create_descriptor_set_layout;
}
vk;

static struct hooked hooked;
static BOOL in_software; /* the last device that was made */

static VkResult VKAPI_CALL create_bounded_layout(VkDevice device, const VkDescriptorSetLayoutCreateInfo *info,
        const VkAllocationCallbacks *allocator, VkDescriptorSetLayout *layout)
{
    VkDescriptorSetLayoutCreateInfo bounded = *info;
    VkDescriptorSetLayoutBinding bindings[16];
    uint32_t i;

    if (info->bindingCount > COUNT(bindings))
        return vk.create_descriptor_set_layout(device, info, allocator, layout);
    for (i = 0; i < info->bindingCount; ++i)
    {
        bindings[i] = info->pBindings[i];
        bindings[i].descriptorCount = min(bindings[i].descriptorCount, MOST_DESCRIPTORS);
    }
    bounded.pBindings = bindings;
    return vk.create_descriptor_set_layout(device, &bounded, allocator, layout);
}

static VkResult VKAPI_CALL create_device(VkPhysicalDevice adapter, const VkDeviceCreateInfo *info,
        const VkAllocationCallbacks *allocator, VkDevice *device)
{
    VkPhysicalDeviceProperties properties;
    VkResult result;

    if ((result = vk.create_device(adapter, info, allocator, device)) < 0)
        return result;
    vk.properties(adapter, &properties);
    in_software = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    if (hooked.device || (in_software && !getenv("EPCHECK_HOOK_SOFTWARE")))
        return result;
    hooked.device = *device;
    hooked.properties = properties;
    hooked.get = vk.get_device_proc_addr;
    return result;
}

PFN_vkVoidFunction take(const struct hook *hooks, size_t count, const char *name, PFN_vkVoidFunction found)
{
    size_t i;

    for (i = 0; i < count; ++i)
    {
        if (strcmp(name, hooks[i].name))
            continue;
        *hooks[i].real = found;
        return hooks[i].ours;
    }
    return found;
}

static PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char *name)
{
    const struct hook taken[] =
    {
        {"vkCreateDescriptorSetLayout", (PFN_vkVoidFunction *)&vk.create_descriptor_set_layout,
                (PFN_vkVoidFunction)create_bounded_layout},
    };
    PFN_vkVoidFunction found = vk.get_device_proc_addr(device, name);

    if (!found)
        return found;
    found = take(taken, COUNT(taken), name, found);
    if (device != hooked.device)
        return found;
    found = semaphore_function(&hooked, name, found);
    found = memory_function(&hooked, name, found);
    return pipeline_function(&hooked, name, found);
}

static PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char *name)
{
    const struct hook taken[] =
    {
        {"vkCreateDevice", (PFN_vkVoidFunction *)&vk.create_device, (PFN_vkVoidFunction)create_device},
        {"vkGetDeviceProcAddr", (PFN_vkVoidFunction *)&vk.get_device_proc_addr, (PFN_vkVoidFunction)device_function},
    };
    PFN_vkVoidFunction found = vk.get_instance_proc_addr(instance, name);

    if (instance && !vk.properties)
        vk.properties = (void *)vk.get_instance_proc_addr(instance, "vkGetPhysicalDeviceProperties");
    return found ? take(taken, COUNT(taken), name, found) : found;
}

static HRESULT signal_event(HANDLE event)
{
    return SetEvent(event) ? S_OK : E_FAIL;
}

__declspec(dllexport) HRESULT WINAPI VkD3D12CreateDevice(
        const LUID *luid, IUnknown *parent, D3D_FEATURE_LEVEL level, REFIID iid, void **device)
{
    static const char *const instance_extensions[] =
    {
        VK_KHR_SURFACE_EXTENSION_NAME,
        VK_KHR_WIN32_SURFACE_EXTENSION_NAME,
    };
    static const char *const optional_instance_extensions[] =
    {
        VK_KHR_EXTERNAL_MEMORY_CAPABILITIES_EXTENSION_NAME,
        VK_KHR_GET_PHYSICAL_DEVICE_PROPERTIES_2_EXTENSION_NAME,
    };
    static const char *const device_extensions[] = {VK_KHR_SWAPCHAIN_EXTENSION_NAME};
    static const struct vkd3d_application_info application =
    {
        .type = VKD3D_STRUCTURE_TYPE_APPLICATION_INFO,
        .api_version = VKD3D_API_VERSION_1_14,
    };
    struct vkd3d_optional_instance_extensions_info optional =
    {
        .type = VKD3D_STRUCTURE_TYPE_OPTIONAL_INSTANCE_EXTENSIONS_INFO,
        .next = &application,
        .extensions = optional_instance_extensions,
        .extension_count = COUNT(optional_instance_extensions),
    };
    struct vkd3d_instance_create_info instance_info =
    {
        .type = VKD3D_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .next = &optional,
        .pfn_signal_event = signal_event,
        .wchar_size = sizeof(WCHAR),
        .instance_extensions = instance_extensions,
        .instance_extension_count = COUNT(instance_extensions),
    };
    struct vkd3d_device_create_info device_info =
    {
        .type = VKD3D_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .minimum_feature_level = level,
        .device_extensions = device_extensions,
        .device_extension_count = COUNT(device_extensions),
        .parent = parent,
    };
    struct vkd3d_instance *instance;
    HMODULE vulkan;
    void *made;
    HRESULT hr;

    if (!(vulkan = LoadLibraryA("vulkan-1.dll")))
        return E_FAIL;
    vk.get_instance_proc_addr = (void *)GetProcAddress(vulkan, "vkGetInstanceProcAddr");
    instance_info.pfn_vkGetInstanceProcAddr = instance_function;
    if (FAILED(hr = vkd3d_create_instance(&instance_info, &instance)))
        return hr;
    device_info.instance = instance;
    device_info.adapter_luid = *luid;
    hr = vkd3d_create_device(&device_info, iid, device);
    vkd3d_instance_decref(instance);
    if (SUCCEEDED(hr) && in_software && SUCCEEDED(IUnknown_QueryInterface((IUnknown *)*device, &IID_ID3D12Device, &made)))
    {
        pause_between_questions(made);
        ID3D12Device_Release((ID3D12Device *)made);
    }
    return hr;
}
