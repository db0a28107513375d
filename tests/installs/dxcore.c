/* A dxcore.dll with one adapter, an NPU, as dxcore_interface.h declares its interfaces: Wine's has none of them. It
   refuses a call that has another interface, attribute or size than the header asks for. */

#include <stdint.h>
#include <string.h>
#include <windows.h>

typedef struct { const void *const *table; } Object;

static const GUID FACTORY = {0x78ee5945, 0xc36e, 0x4b13, {0xa6, 0x69, 0x00, 0x5d, 0xd1, 0x1c, 0x0f, 0x06}};
static const GUID LIST = {0x526c7776, 0x40e9, 0x459b, {0xb7, 0x11, 0xf3, 0x2a, 0xd7, 0x6d, 0xfc, 0x28}};
static const GUID ADAPTER = {0xf0db4c7f, 0xfe5a, 0x42a2, {0xbd, 0x62, 0xf2, 0xa6, 0xcf, 0x6f, 0xc8, 0x3e}};
static const GUID GENERIC_ML = {0xb71b0d41, 0x1088, 0x422f, {0xa2, 0x7c, 0x02, 0x50, 0xb7, 0xd3, 0xa9, 0x88}};

static const uint64_t LUID_OF_NPU = 0xE001, DRIVER = 32ULL << 48 | 100ULL << 16 | 3104;
static const uint32_t HARDWARE[4] = {0x8086, 0x643E, 0, 0};
static const char NAME[] = "Intel(R) AI Boost";
static const BOOLEAN IS_HARDWARE = 1;

static HRESULT give(void *object, const GUID *wanted, const GUID *known, void **made)
{
    *made = IsEqualGUID(wanted, known) ? object : NULL;
    return *made ? S_OK : E_NOINTERFACE;
}

static HRESULT query(Object *self, const GUID *wanted, void **made) { (void)self; (void)wanted; *made = NULL; return E_NOINTERFACE; }
static ULONG count(Object *self) { (void)self; return 1; }

static HRESULT read_property(Object *self, uint32_t property, size_t size, void *data)
{
    static const struct { uint32_t property; const void *value; size_t size; } KNOWN[] = {
        {0, &LUID_OF_NPU, 8}, {1, &DRIVER, 8}, {3, HARDWARE, 16}, {11, &IS_HARDWARE, 1}};
    (void)self;
    if (property == 2 && size >= sizeof NAME)
        return memcpy(data, NAME, sizeof NAME), S_OK;
    for (size_t at = 0; at < sizeof KNOWN / sizeof *KNOWN; at++)
        if (KNOWN[at].property == property && KNOWN[at].size == size)
            return memcpy(data, KNOWN[at].value, size), S_OK;
    return E_INVALIDARG;
}

static const void *const OF_ADAPTER[] = {query, count, count, NULL, NULL, NULL, read_property};
static Object npu = {OF_ADAPTER};

static HRESULT get_adapter(Object *self, uint32_t place, const GUID *wanted, void **made)
{
    (void)self;
    return place ? E_INVALIDARG : give(&npu, wanted, &ADAPTER, made);
}

static uint32_t count_none(Object *self) { (void)self; return 0; }

static const void *const OF_LIST[] = {query, count, count, get_adapter, count};
static const void *const OF_EMPTY_LIST[] = {query, count, count, get_adapter, count_none};
static Object list = {OF_LIST}, empty_list = {OF_EMPTY_LIST};

static HRESULT create_list(Object *self, uint32_t attributes, const GUID *attribute, const GUID *wanted, void **made)
{
    (void)self;
    return attributes != 1 ? E_INVALIDARG
                           : give(IsEqualGUID(attribute, &GENERIC_ML) ? &list : &empty_list, wanted, &LIST, made);
}

static const void *const OF_FACTORY[] = {query, count, count, create_list};
static Object factory = {OF_FACTORY};

__declspec(dllexport) HRESULT DXCoreCreateAdapterFactory(const GUID *wanted, void **made)
{
    return give(&factory, wanted, &FACTORY, made);
}
