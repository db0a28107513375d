/* Fences that are asked for in pauses.
 *
 * DirectML's provider waits for its device by asking a fence for its value, half a million times a second. A software
 * driver compiles and computes on the cores that this takes: 38 percent of a worker's time where its shaders are new.
 * Here a thread that has asked long enough sleeps before it asks again, an eighth of the time that it has waited and
 * at most MOST_PAUSE. On a GPU, which needs no core, it asks as before.
 */
#define COBJMACROS
#include <windows.h>
#include "d3d12.h"

#include "hooks.h"

/* Times in milliseconds. FIRST_PAUSE: when a thread that asks sleeps first; whoever slept earlier would be late for
 * work of a millisecond. */
#define FIRST_PAUSE 10
#define MOST_PAUSE 5
#define MANY 1000 /* questions with the same answer: that many make a wait */

static UINT64 (STDMETHODCALLTYPE *real_completed_value)(ID3D12Fence *fence);

static LONGLONG now(void)
{
    static LARGE_INTEGER frequency;
    LARGE_INTEGER counter;

    if (!frequency.QuadPart)
        QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&counter);
    return counter.QuadPart * 1000 / frequency.QuadPart;
}

static UINT64 STDMETHODCALLTYPE completed_value(ID3D12Fence *fence)
{
    static __thread struct
    {
        ID3D12Fence *fence;
        UINT64 value;
        LONGLONG since;
        unsigned int asked;
    }
    waiting;
    UINT64 value = real_completed_value(fence);
    LONGLONG time;

    if (fence != waiting.fence || value != waiting.value)
    {
        waiting.fence = fence;
        waiting.value = value;
        waiting.asked = 0;
    }
    else if (++waiting.asked == MANY)
    {
        waiting.since = now();
    }
    else if (waiting.asked > MANY && (time = now() - waiting.since) > FIRST_PAUSE)
    {
        Sleep(min(time / 8, MOST_PAUSE));
        value = real_completed_value(fence);
    }
    return value;
}

void pause_between_questions(ID3D12Device *device)
{
    UINT64 (STDMETHODCALLTYPE **entry)(ID3D12Fence *fence);
    ID3D12Fence *fence;
    DWORD protection;

    if (real_completed_value
            || FAILED(ID3D12Device_CreateFence(device, 0, D3D12_FENCE_FLAG_NONE, &IID_ID3D12Fence, (void **)&fence)))
        return;
    /* The table of functions is the same for all fences. */
    entry = (void *)&fence->lpVtbl->GetCompletedValue;
    if (VirtualProtect(entry, sizeof(*entry), PAGE_READWRITE, &protection))
    {
        real_completed_value = *entry;
        *entry = completed_value;
        VirtualProtect(entry, sizeof(*entry), protection, &protection);
    }
    ID3D12Fence_Release(fence);
}
