// planted - a small ONNX Runtime plugin execution provider that computes on the CPU.
//
// It is written to be read.  Top to bottom:
//   1. the planted faults (EP_FAULT), each one of USE: a session run alone, in one thread, gives right values;
//   2. helpers around the C API (no C++ wrapper header is needed);
//   3. process-wide stores: packed weights, constant tables;
//   4. kernels, one function per operator;
//   5. Plan: what Compile() makes out of a group of nodes, and its OrtNodeComputeInfo;
//   6. OrtEp and OrtEpFactory;
//   7. the two exported functions.
//
// Without EP_FAULT every path is correct and thread-safe: a Plan is immutable after Compile(), and everything that
// a run needs (intermediate tensors, scratch) belongs to that run.  Code guarded by Is(Fault::...) is the bad part.
//
// Needs onnxruntime_c_api.h of ONNX Runtime 1.23 or later; asks the runtime for API version 23 only, so that the
// library works with every runtime from 1.23 on.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#include <pmmintrin.h>
#endif

#include "onnxruntime_c_api.h"  // includes onnxruntime_ep_c_api.h

namespace {

constexpr uint32_t kApiVersion = 23;
constexpr const char* kEpName = "PlantedExecutionProvider";
constexpr const char* kVendor = "planted";

// =====================================================================================================================
// 1. Faults.  README.md says for each one under which use it shows.
// =====================================================================================================================
// Numbers are public threads of microsoft/onnxruntime unless another repository is named.
enum class Fault {
  kNone,
  // threads
  kStaticScratch,       // #13571: one static row buffer for all sessions
  kBoundIoMembers,      // PR #18981 (QNN): input and output pointers kept as members between bind and execute
  kLazyPackRace,        // PR #396 of mjansson/rpmalloc: "ready" is published before the work is done
  kThreeSlots,          // #19275: a ring of three workspaces, taken without asking whether one is in use
  kRunEndClears,        // PR #19734 of pytorch/executorch: the end of one run frees what another run uses
  kLockOrder,           // #20713: two locks taken in both orders; all threads stall
  kParallelModeTls,     // PR #24192: per-run state kept in a thread_local of the thread that called Run()
  // weights
  kWeightsByName,       // #6455: the cache key does not see the values
  kWeightsByAddress,    // PR #13934 of pytorch/executorch: an address taken for an identity
  kSharedWeightsErase,  // PR #647 of onnxruntime/onnxruntime-qnn: shared state dropped by whichever user goes first
  kLazyExternalRead,    // #14815, PR #25482: external weights read at the first run, not at Compile()
  kNoPrepackPath,       // session.disable_prepacking=1 leads to a path that forgets transB
  // shapes and types
  kShapeHash8,          // PR #13837: plans cached under a short hash that is never compared
  kStaleTail,           // #4190 of google/XNNPACK: padding zeroed only when the kept buffer grows
  kCapacityForgotten,   // #10103: a buffer shrinks, its recorded capacity does not
  kDtypeMissing,        // PR #17176: kernel cache without the element type in its key
  kEmptySticky,         // #21248: an input that was empty once is skipped for ever
  kReshapeFirstTarget,  // #20426: the first target shape is kept
  // feeds and bindings
  kCapturedPointers,    // #29782, PR #9978: a "captured graph" replays old input addresses
  kAliasZeroFirst,      // #32243: the output is written before the input that shares its memory is read
  kWritesFeed,          // #20623: computes in place in the caller's input
  kRound8Overrun,       // #1890 of google/XNNPACK: whole vectors of eight past the end of the output
  // leaks
  kFdLeak,              // #14815: one file descriptor a session
  kThreadLeak,          // #4093: one thread a session
  kShapeWorkspaceLeak,  // #5796: a workspace for every new shape, never freed
  // life cycle
  kFailedSessionSlots,  // PR #29634: what Compile() takes, ReleaseState() gives back - which a failed session never calls
  kReregisterFlag,      // PR #2292 of microsoft/onnxruntime-genai: "initialised" outlives what was initialised
  kExitJoinable,        // PR #3978, #24579: a static std::thread still joinable at exit
  kSlotShift,           // PR #822 of onnxruntime/onnxruntime-qnn: a session's slot is wrong once an older one is gone
  // process state
  kFtzLeak,             // PR #5391: flush-to-zero set in the caller's thread and left so
};

struct FaultName {
  const char* name;
  Fault fault;
};
constexpr FaultName kFaultNames[] = {
    {"static_scratch", Fault::kStaticScratch},
    {"bound_io_members", Fault::kBoundIoMembers},
    {"lazy_pack_race", Fault::kLazyPackRace},
    {"three_slots", Fault::kThreeSlots},
    {"run_end_clears", Fault::kRunEndClears},
    {"lock_order", Fault::kLockOrder},
    {"parallel_mode_tls", Fault::kParallelModeTls},
    {"weights_by_name", Fault::kWeightsByName},
    {"weights_by_address", Fault::kWeightsByAddress},
    {"shared_weights_erase", Fault::kSharedWeightsErase},
    {"lazy_external_read", Fault::kLazyExternalRead},
    {"no_prepack_path", Fault::kNoPrepackPath},
    {"shape_hash8", Fault::kShapeHash8},
    {"stale_tail", Fault::kStaleTail},
    {"capacity_forgotten", Fault::kCapacityForgotten},
    {"dtype_missing", Fault::kDtypeMissing},
    {"empty_sticky", Fault::kEmptySticky},
    {"reshape_first_target", Fault::kReshapeFirstTarget},
    {"captured_pointers", Fault::kCapturedPointers},
    {"alias_zero_first", Fault::kAliasZeroFirst},
    {"writes_feed", Fault::kWritesFeed},
    {"round8_overrun", Fault::kRound8Overrun},
    {"fd_leak", Fault::kFdLeak},
    {"thread_leak", Fault::kThreadLeak},
    {"shape_workspace_leak", Fault::kShapeWorkspaceLeak},
    {"failed_session_slots", Fault::kFailedSessionSlots},
    {"reregister_flag", Fault::kReregisterFlag},
    {"exit_joinable", Fault::kExitJoinable},
    {"slot_shift", Fault::kSlotShift},
    {"ftz_leak", Fault::kFtzLeak},
};

Fault g_fault = Fault::kNone;  // read once, in CreateEpFactories()
inline bool Is(Fault f) { return g_fault == f; }

Fault ReadFault() {
  const char* env = std::getenv("EP_FAULT");
  if (env == nullptr || *env == '\0') return Fault::kNone;
  for (const FaultName& n : kFaultNames)
    if (std::strcmp(n.name, env) == 0) return n.fault;
  throw std::runtime_error(std::string("EP_FAULT: no fault is called '") + env + "'");
}

// =====================================================================================================================
// 2. Helpers around the C API.
// =====================================================================================================================
const OrtApi* g_ort = nullptr;  // owned by ONNX Runtime, valid as long as it is loaded
const OrtEpApi* g_ep_api = nullptr;

void Check(OrtStatus* status) {
  if (status == nullptr) return;
  std::string message = g_ort->GetErrorMessage(status);
  g_ort->ReleaseStatus(status);
  throw std::runtime_error(message);
}

// No exception may cross the C boundary.  ORT_FAIL and not ORT_EP_FAIL: the Python API answers the latter by making the
// session anew without the provider, which hides what went wrong.
template <typename F>
OrtStatus* Guard(F&& f) noexcept {
  try {
    f();
    return nullptr;
  } catch (const std::exception& e) {
    return g_ort->CreateStatus(ORT_FAIL, e.what());
  } catch (...) {
    return g_ort->CreateStatus(ORT_FAIL, "planted: unknown exception");
  }
}

using Shape = std::vector<int64_t>;
using Dtype = ONNXTensorElementDataType;

int64_t Count(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

size_t SizeOf(Dtype t) {
  switch (t) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
      return 1;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
      return 2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
      return 4;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
      return 8;
    default:
      return 0;  // not supported
  }
}

// A view: the bytes belong to ONNX Runtime, to the run or to the plan's constants.
struct Tensor {
  Dtype type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  Shape shape;
  const void* data = nullptr;

  bool present() const { return type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED; }
  int64_t count() const { return Count(shape); }
  template <typename T>
  const T* as() const { return static_cast<const T*>(data); }
};

Tensor ViewOf(const OrtValue* value) {
  Tensor t;
  if (value == nullptr) return t;
  OrtTensorTypeAndShapeInfo* info = nullptr;
  Check(g_ort->GetTensorTypeAndShape(value, &info));
  std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> owner(
      info, [](OrtTensorTypeAndShapeInfo* p) { g_ort->ReleaseTensorTypeAndShapeInfo(p); });
  size_t rank = 0;
  Check(g_ort->GetTensorElementType(info, &t.type));
  Check(g_ort->GetDimensionsCount(info, &rank));
  t.shape.resize(rank);
  if (rank > 0) Check(g_ort->GetDimensions(info, t.shape.data(), rank));
  Check(g_ort->GetTensorData(value, &t.data));
  return t;
}

// A null OrtValueInfo stands for an optional input or output that is left out.
std::string NameOf(const OrtValueInfo* value) {
  const char* name = "";
  if (value != nullptr) Check(g_ort->GetValueInfoName(value, &name));
  return name;
}

Dtype TypeOf(const OrtValueInfo* value) {
  Dtype type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  const OrtTypeInfo* type_info = nullptr;  // owned by the OrtValueInfo
  Check(g_ort->GetValueInfoTypeInfo(value, &type_info));
  const OrtTensorTypeAndShapeInfo* tensor_info = nullptr;
  if (type_info != nullptr) Check(g_ort->CastTypeInfoToTensorInfo(type_info, &tensor_info));
  if (tensor_info != nullptr) Check(g_ort->GetTensorElementType(tensor_info, &type));
  return type;
}

std::vector<const OrtValueInfo*> InputsOf(const OrtNode* node) {
  size_t n = 0;
  Check(g_ort->Node_GetNumInputs(node, &n));
  std::vector<const OrtValueInfo*> values(n);
  Check(g_ort->Node_GetInputs(node, values.data(), n));
  return values;
}

std::vector<const OrtValueInfo*> OutputsOf(const OrtNode* node) {
  size_t n = 0;
  Check(g_ort->Node_GetNumOutputs(node, &n));
  std::vector<const OrtValueInfo*> values(n);
  Check(g_ort->Node_GetOutputs(node, values.data(), n));
  return values;
}

std::vector<const OrtNode*> NodesOf(const OrtGraph* graph) {  // in topological order
  size_t n = 0;
  Check(g_ort->Graph_GetNumNodes(graph, &n));
  std::vector<const OrtNode*> nodes(n);
  Check(g_ort->Graph_GetNodes(graph, nodes.data(), n));
  return nodes;
}

std::string OpTypeOf(const OrtNode* node) {
  const char* op_type = nullptr;
  Check(g_ort->Node_GetOperatorType(node, &op_type));
  return op_type;
}

struct Attributes {
  std::map<std::string, std::vector<int64_t>> ints;  // INT and INTS
  std::map<std::string, float> floats;
  std::map<std::string, std::string> strings;

  int64_t Int(const char* name, int64_t otherwise) const {
    auto it = ints.find(name);
    return it == ints.end() || it->second.empty() ? otherwise : it->second[0];
  }
  std::vector<int64_t> Ints(const char* name) const {
    auto it = ints.find(name);
    return it == ints.end() ? std::vector<int64_t>{} : it->second;
  }
  float Float(const char* name, float otherwise) const {
    auto it = floats.find(name);
    return it == floats.end() ? otherwise : it->second;
  }
  std::string String(const char* name, const char* otherwise) const {
    auto it = strings.find(name);
    return it == strings.end() ? otherwise : it->second;
  }
};

Attributes AttributesOf(const OrtNode* node) {
  size_t n = 0;
  Check(g_ort->Node_GetNumAttributes(node, &n));
  std::vector<const OrtOpAttr*> attrs(n);
  if (n > 0) Check(g_ort->Node_GetAttributes(node, attrs.data(), n));
  Attributes result;
  for (const OrtOpAttr* attr : attrs) {
    if (attr == nullptr) continue;
    const char* name = nullptr;
    OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
    Check(g_ort->OpAttr_GetName(attr, &name));
    Check(g_ort->OpAttr_GetType(attr, &type));
    size_t bytes = 0;
    // The first call, with no room, only asks for the size; its error status means "that many bytes, please".
    auto read = [&](void* to, size_t room) { return g_ort->ReadOpAttr(attr, type, to, room, &bytes); };
    if (type == ORT_OP_ATTR_INT) {
      int64_t v = 0;
      Check(read(&v, sizeof(v)));
      result.ints[name] = {v};
    } else if (type == ORT_OP_ATTR_FLOAT) {
      float v = 0;
      Check(read(&v, sizeof(v)));
      result.floats[name] = v;
    } else if (type == ORT_OP_ATTR_INTS) {
      if (OrtStatus* s = read(nullptr, 0)) g_ort->ReleaseStatus(s);
      std::vector<int64_t> v(bytes / sizeof(int64_t));
      if (!v.empty()) Check(read(v.data(), bytes));
      result.ints[name] = std::move(v);
    } else if (type == ORT_OP_ATTR_STRING) {
      if (OrtStatus* s = read(nullptr, 0)) g_ort->ReleaseStatus(s);
      std::string v(bytes, '\0');
      if (bytes > 0) Check(read(&v[0], bytes));
      result.strings[name] = v.c_str();
    }
  }
  return result;
}

// =====================================================================================================================
// 3. Process-wide stores.  They are made with `new` and never destroyed: a session may still be alive, or even run in
//    another thread, while the static destructors of the process do their work.
// =====================================================================================================================

// A constant of the model, copied: ONNX Runtime may release its own initializers once the session is created.
struct Constant {
  std::string name;
  Tensor view;              // points into bytes
  std::vector<char> bytes;
  std::string external_path;  // file of external data, or empty
  int64_t external_offset = 0;
  const void* ort_address = nullptr;
};
using ConstantTable = std::map<std::string, Constant>;

// Weights of MatMul and Gemm in the layout that the kernel wants: [N][K].
struct Packed {
  std::vector<float> nk;
};
std::vector<float> PackNK(const float* b, int64_t k, int64_t n, bool transposed) {
  std::vector<float> nk(static_cast<size_t>(n * k));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < k; ++i) nk[j * k + i] = transposed ? b[j * k + i] : b[i * n + j];
  return nk;
}

uint64_t Hash(const void* data, size_t n, uint64_t h = 14695981039346656037ull) {
  const unsigned char* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < n; ++i) h = (h ^ p[i]) * 1099511628211ull;
  return h;
}

std::mutex g_weights_mutex;
std::mutex g_plans_mutex;  // kLockOrder only: guards the statistics below
auto& g_plan_runs = *new std::map<const void*, uint64_t>;

// Sessions that hold equal weights share one packed copy.  Entries are weak: the last plan that goes takes the copy
// with it.  The key is the content, so neither names nor addresses nor files matter.
class WeightStore {
 public:
  std::shared_ptr<const Packed> Get(const Constant& w, int64_t k, int64_t n, bool transposed) {
    std::string key = std::to_string(k) + "x" + std::to_string(n) + (transposed ? "t:" : ":");
    if (Is(Fault::kWeightsByName)) {
      key += w.name;
    } else if (Is(Fault::kWeightsByAddress)) {
      key += std::to_string(reinterpret_cast<uintptr_t>(w.ort_address));
    } else {
      key += std::to_string(Hash(w.bytes.data(), w.bytes.size())) + "-" +
             std::to_string(Hash(w.bytes.data(), w.bytes.size(), 0x9e3779b97f4a7c15ull));
    }
    const bool keep = Is(Fault::kWeightsByName) || Is(Fault::kWeightsByAddress);

    std::lock_guard<std::mutex> lock(g_weights_mutex);
    if (std::shared_ptr<const Packed> known = entries_[key].lock()) return known;
    auto made = std::make_shared<const Packed>(Packed{PackNK(w.view.as<float>(), k, n, transposed)});
    entries_[key] = made;
    if (keep) kept_.push_back(made);
    return made;
  }

  void Prune() {  // drops the entries nobody uses any more
    std::lock_guard<std::mutex> lock(g_weights_mutex);
    for (auto it = entries_.begin(); it != entries_.end();) it = it->second.expired() ? entries_.erase(it) : std::next(it);
  }

 private:
  std::map<std::string, std::weak_ptr<const Packed>> entries_;
  std::vector<std::shared_ptr<const Packed>> kept_;
};
auto& g_weight_store = *new WeightStore;

// kSharedWeightsErase: one owner for all sessions, freed when the first of them is released.
auto& g_shared_weights = *new std::map<uint64_t, std::unique_ptr<Packed>>;

// kSlotShift: the constants of all sessions in one vector; a session knows its index.
std::mutex g_slots_mutex;
auto& g_slots = *new std::vector<std::shared_ptr<ConstantTable>>;

// kThreadLeak: where the leaked threads wait.
std::mutex& g_idle_mutex = *new std::mutex;
std::condition_variable& g_idle_cv = *new std::condition_variable;

// kExitJoinable: a worker shared by all sessions, joined when the last one is released.
struct Worker {
  std::mutex mutex;
  std::condition_variable cv;
  bool stop = false;
  int users = 0;
  std::thread thread;  // static storage: ~thread() of a joinable thread calls std::terminate()

  void Acquire() {
    std::lock_guard<std::mutex> lock(mutex);
    if (users++ > 0) return;
    stop = false;
    thread = std::thread([this] {
      std::unique_lock<std::mutex> l(mutex);
      cv.wait(l, [this] { return stop; });
    });
  }
  void Release() {
    std::unique_lock<std::mutex> lock(mutex);
    if (--users > 0) return;
    stop = true;
    cv.notify_all();
    lock.unlock();
    thread.join();
  }
};
Worker g_worker;

// kFailedSessionSlots: the "device" has this many contexts.
constexpr int kDeviceSlots = 24;
std::atomic<int> g_slots_in_use{0};

// kParallelModeTls: set by OnRunStart() in the thread that called Run(), read by the kernels.
thread_local int t_vector_width = 0;

// =====================================================================================================================
// 4. Kernels.
// =====================================================================================================================
class Plan;

// One node of a group.  Immutable after Compile(), except for the members at the end, which only faults use.
struct Step {
  std::string op;
  int since = 0;
  Attributes attrs;
  std::vector<int> inputs;   // value numbers; -1: left out
  std::vector<int> outputs;
  std::shared_ptr<const Packed> packed;  // MatMul, Gemm: constant B
  bool in_place_feed = false;            // kWritesFeed: input 0 is a graph input that nobody else reads

  // --- state that a correct plan would not have ---
  struct Bad {
    const void *a = nullptr, *b = nullptr;  // kBoundIoMembers
    void* out = nullptr;
    std::mutex mutex;
    std::atomic<bool> packed_ready{false};  // kLazyPackRace
    Packed lazy;
    std::vector<float> ring[3];  // kThreeSlots
    std::atomic<unsigned> ring_next{0};
    std::map<uint8_t, Shape> strides_by_hash;  // kShapeHash8
    std::vector<float> lanes;                  // kStaleTail
    std::unique_ptr<float[]> columns;          // kCapacityForgotten
    size_t columns_capacity = 0;
    std::vector<char> skip;                    // kEmptySticky
    Shape target;                              // kReshapeFirstTarget
    bool target_known = false;
    const float* shared_nk = nullptr;          // kSharedWeightsErase
  };
  std::unique_ptr<Bad> bad = std::make_unique<Bad>();
};

// What a kernel sees.
class Call {
 public:
  Call(const Step& step, std::vector<Tensor>& values, const std::function<void*(int, Dtype, const Shape&)>& allocate,
       bool prepack)
      : step(step), prepack(prepack), values_(values), allocate_(allocate) {}

  const Step& step;
  const bool prepack;

  size_t num_inputs() const { return step.inputs.size(); }
  Tensor in(size_t i) const {
    return i < step.inputs.size() && step.inputs[i] >= 0 ? values_[step.inputs[i]] : Tensor{};
  }
  // Asks for output 0 and returns its memory; all operators here have one output.
  void* out(Dtype type, const Shape& shape) const {
    void* p = allocate_(step.outputs[0], type, shape);
    values_[step.outputs[0]] = Tensor{type, shape, p};
    return p;
  }

 private:
  std::vector<Tensor>& values_;
  const std::function<void*(int, Dtype, const Shape&)>& allocate_;
};

int64_t NormalAxis(int64_t axis, size_t rank) {
  if (axis < 0) axis += static_cast<int64_t>(rank);
  if (axis < 0 || axis >= static_cast<int64_t>(rank)) throw std::runtime_error("axis out of range");
  return axis;
}

Shape BroadcastShape(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1, db = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (da != db && da != 1 && db != 1) throw std::runtime_error("shapes cannot be broadcast");
    out[out.size() - 1 - i] = da == 1 ? db : da;
  }
  return out;
}

// Element strides of `shape` seen as `out`: 0 where it is broadcast.
Shape BroadcastStrides(const Shape& shape, const Shape& out) {
  Shape strides(out.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    size_t s = shape.size() - 1 - i, o = out.size() - 1 - i;
    strides[o] = shape[s] == 1 ? 0 : stride;
    stride *= shape[s];
  }
  return strides;
}

// Calls f(linear index, offset a, offset b) for every element of `shape`.
template <typename F>
void ForEach2(const Shape& shape, const Shape& sa, const Shape& sb, F&& f) {
  const int64_t n = Count(shape);
  Shape index(shape.size(), 0);
  int64_t a = 0, b = 0;
  for (int64_t i = 0; i < n; ++i) {
    f(i, a, b);
    for (size_t d = shape.size(); d-- > 0;) {
      a += sa[d];
      b += sb[d];
      if (++index[d] < shape[d]) break;
      a -= sa[d] * shape[d];
      b -= sb[d] * shape[d];
      index[d] = 0;
    }
  }
}

// ---- Add, Sub, Mul --------------------------------------------------------------------------------------------------
template <typename T>
T Apply(char op, T x, T y) {
  return op == 'A' ? static_cast<T>(x + y) : op == 'S' ? static_cast<T>(x - y) : static_cast<T>(x * y);
}

template <typename T>
void BinaryT(char op, const void* av, const void* bv, void* ov, const Shape& sa, const Shape& sb, const Shape& so) {
  const T* a = static_cast<const T*>(av);
  const T* b = static_cast<const T*>(bv);
  T* o = static_cast<T*>(ov);
  if (Is(Fault::kAliasZeroFirst)) {
    // Two passes "for the vector unit": expand b into the output, then apply a.  If the application bound the
    // output to the memory of a (state updated in place), a is gone by then.
    ForEach2(so, BroadcastStrides(sb, so), BroadcastStrides(sb, so), [&](int64_t i, int64_t j, int64_t) { o[i] = b[j]; });
    ForEach2(so, BroadcastStrides(sa, so), BroadcastStrides(sa, so),
             [&](int64_t i, int64_t j, int64_t) { o[i] = Apply(op, a[j], o[i]); });
    return;
  }
  if (sa == sb) {
    const int64_t n = Count(so);
    for (int64_t i = 0; i < n; ++i) o[i] = Apply(op, a[i], b[i]);
    return;
  }
  ForEach2(so, BroadcastStrides(sa, so), BroadcastStrides(sb, so),
           [&](int64_t i, int64_t ia, int64_t ib) { o[i] = Apply(op, a[ia], b[ib]); });
}

using BinaryFn = void (*)(char, const void*, const void*, void*, const Shape&, const Shape&, const Shape&);
BinaryFn BinaryFor(Dtype t) {
  switch (t) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: return BinaryT<float>;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return BinaryT<double>;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: return BinaryT<int32_t>;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: return BinaryT<int64_t>;
    default: throw std::runtime_error("element type");
  }
}

// kBoundIoMembers: works through the binding in blocks, and looks it up for every block.
__attribute__((noinline)) void ExecuteBound(Step::Bad& s, BinaryFn fn, char op, size_t size, const Shape& sa,
                                            const Shape& sb, const Shape& so) {
  if (sa != sb) return fn(op, s.a, s.b, s.out, sa, sb, so);
  const int64_t n = Count(so), block = 1024;
  for (int64_t i = 0; i < n; i += block) {
    const Shape part{std::min(block, n - i)};
    const size_t at = static_cast<size_t>(i) * size;
    fn(op, static_cast<const char*>(s.a) + at, static_cast<const char*>(s.b) + at, static_cast<char*>(s.out) + at, part,
       part, part);
  }
}

void Binary(const Call& c) {
  const Tensor a = c.in(0), b = c.in(1);
  const Shape shape = BroadcastShape(a.shape, b.shape);
  void* out = c.out(a.type, shape);
  const char op = c.step.op[0];
  BinaryFn fn = BinaryFor(a.type);

  if (Is(Fault::kDtypeMissing)) {
    // A process-wide cache of chosen kernels.  The key has everything but the element type.
    static std::mutex mutex;
    static std::map<std::pair<size_t, Shape>, BinaryFn> chosen;
    std::lock_guard<std::mutex> lock(mutex);
    auto found = chosen.emplace(std::make_pair(SizeOf(a.type), shape), fn).first;
    fn = found->second;
  }
  if (Is(Fault::kBoundIoMembers)) {
    // "Bind" and "execute" as two steps, as device APIs have them; the binding is a member of the shared plan.
    Step::Bad& s = *c.step.bad;
    s.a = a.data;
    s.b = b.data;
    s.out = out;
    ExecuteBound(s, fn, op, SizeOf(a.type), a.shape, b.shape, shape);
    return;
  }
  fn(op, a.data, b.data, out, a.shape, b.shape, shape);
}

// ---- Relu, Sigmoid --------------------------------------------------------------------------------------------------
void Relu(const Call& c) {
  const Tensor x = c.in(0);
  const int64_t n = x.count();
  if (x.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32) {
    int32_t* o = static_cast<int32_t*>(c.out(x.type, x.shape));
    for (int64_t i = 0; i < n; ++i) o[i] = std::max(x.as<int32_t>()[i], 0);
    return;
  }
  float* o = static_cast<float*>(c.out(x.type, x.shape));
  const float* p = x.as<float>();
  if (Is(Fault::kWritesFeed) && c.step.in_place_feed) {
    // In place first, copied out afterwards.  relu(relu(x)) == relu(x), so a second run does not tell.
    float* w = const_cast<float*>(p);
    for (int64_t i = 0; i < n; ++i) w[i] = w[i] < 0 ? 0.f : w[i];
  }
  for (int64_t i = 0; i < n; ++i) o[i] = p[i] < 0 ? 0.f : p[i];  // keeps NaN
}

void Sigmoid(const Call& c) {
  const Tensor x = c.in(0);
  const int64_t n = x.count();
  float* o = static_cast<float*>(c.out(x.type, x.shape));
  const float* p = x.as<float>();
  auto f = [](float v) { return v >= 0 ? 1.f / (1.f + std::exp(-v)) : std::exp(v) / (1.f + std::exp(v)); };
#if defined(__SSE2__)
  if (Is(Fault::kFtzLeak)) {  // fast denormals for exp(); the caller's thread keeps the mode
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
  }
#endif
  if (Is(Fault::kRound8Overrun)) {
    // Whole vectors of eight.  ONNX Runtime's arena rounds blocks up, so nobody notices; the application's memory
    // ends where it ends.
    for (int64_t i = 0; i < n; i += 8) {
      float lane[8] = {};
      for (int64_t j = i; j < std::min(i + 8, n); ++j) lane[j - i] = f(p[j]);
      std::memcpy(o + i, lane, sizeof(lane));
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) o[i] = f(p[i]);
}

// ---- Softmax --------------------------------------------------------------------------------------------------------
void Softmax(const Call& c) {
  const Tensor x = c.in(0);
  float* o = static_cast<float*>(c.out(x.type, x.shape));
  if (x.count() == 0) return;
  const size_t rank = x.shape.size();
  int64_t outer = 1, len = 1, inner = 1;
  if (c.step.since < 13) {  // opset 1-12: the tensor is flattened to 2-D at `axis`
    int64_t axis = c.step.attrs.Int("axis", 1);
    if (axis < 0) axis += static_cast<int64_t>(rank);
    for (size_t i = 0; i < rank; ++i) (static_cast<int64_t>(i) < axis ? outer : len) *= x.shape[i];
  } else if (rank > 0) {
    const int64_t axis = NormalAxis(c.step.attrs.Int("axis", -1), rank);
    for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i) (i < axis ? outer : i == axis ? len : inner) *= x.shape[i];
  }
  std::vector<float> own;
  std::vector<float>* row = &own;
  if (Is(Fault::kStaticScratch)) {
    static std::vector<float> shared(1 << 16);  // "large enough", allocated once
    if (len <= static_cast<int64_t>(shared.size())) row = &shared;
  }
  if (row == &own) own.resize(static_cast<size_t>(len));
  const float* p = x.as<float>();
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < inner; ++j) {
      const float* in = p + i * len * inner + j;
      float* out = o + i * len * inner + j;
      float top = in[0], sum = 0;
      for (int64_t k = 1; k < len; ++k) top = std::max(top, in[k * inner]);
      for (int64_t k = 0; k < len; ++k) sum += (*row)[k] = std::exp(in[k * inner] - top);
      // As long as another thread needs to write its row: the fault shows on a machine of any speed.
      if (row != &own) std::this_thread::sleep_for(std::chrono::microseconds(50));
      for (int64_t k = 0; k < len; ++k) out[k * inner] = (*row)[k] / sum;
    }
}

// ---- MatMul, Gemm ---------------------------------------------------------------------------------------------------
// C[m][n] = sum over k of A[m][k] * B[n][k]; A may be stored transposed.
void MultiplyNK(const float* a, bool a_transposed, const float* b_nk, float* c, int64_t m, int64_t n, int64_t k) {
  std::vector<float> row(static_cast<size_t>(k));
  for (int64_t i = 0; i < m; ++i) {
    const float* ai = a + i * k;
    if (a_transposed) {
      for (int64_t x = 0; x < k; ++x) row[x] = a[x * m + i];
      ai = row.data();
    }
    for (int64_t j = 0; j < n; ++j) {
      const float* bj = b_nk + j * k;
      float lane[4] = {0, 0, 0, 0};
      int64_t x = 0;
      for (; x + 4 <= k; x += 4)
        for (int l = 0; l < 4; ++l) lane[l] += ai[x + l] * bj[x + l];
      float sum = (lane[0] + lane[1]) + (lane[2] + lane[3]);
      for (; x < k; ++x) sum += ai[x] * bj[x];
      c[i * n + j] = sum;
    }
  }
}

// Returns B in [N][K] order: the copy made at Compile(), or one made now in `scratch`.
const float* BinNK(const Call& c, const float* b, int64_t k, int64_t n, bool transposed, std::vector<float>& scratch) {
  const Step& s = c.step;
  Step::Bad& bad = *s.bad;
  if (bad.shared_nk != nullptr) return bad.shared_nk;  // kSharedWeightsErase
  if (Is(Fault::kLazyPackRace) && s.packed) {
    if (!bad.packed_ready.exchange(true)) {  // exactly one thread packs ... and the others do not wait for it
      bad.lazy.nk.resize(static_cast<size_t>(k * n));
      bad.lazy.nk = PackNK(b, k, n, transposed);
    }
    return bad.lazy.nk.size() == static_cast<size_t>(k * n) ? bad.lazy.nk.data()
                                                            : (scratch.assign(k * n, 0.f), scratch.data());
  }
  if (s.packed) return s.packed->nk.data();
  if (transposed) return b;
  if (Is(Fault::kThreeSlots)) {
    // Three workspaces ought to be enough: they go round, and nobody asks whether one is still in use.
    std::vector<float>& slot = bad.ring[bad.ring_next++ % 3];
    const std::vector<float> nk = PackNK(b, k, n, false);
    if (slot.size() < nk.size()) slot.resize(nk.size());
    std::copy(nk.begin(), nk.end(), slot.begin());
    return slot.data();
  }
  scratch = PackNK(b, k, n, false);
  return scratch.data();
}

void Gemm(const Call& c) {
  const Tensor a = c.in(0), b = c.in(1), bias = c.in(2);
  const bool ta = c.step.attrs.Int("transA", 0) != 0;
  bool tb = c.step.attrs.Int("transB", 0) != 0;
  const float alpha = c.step.attrs.Float("alpha", 1.f), beta = c.step.attrs.Float("beta", 1.f);
  const int64_t m = ta ? a.shape[1] : a.shape[0], k = ta ? a.shape[0] : a.shape[1];
  const int64_t n = tb ? b.shape[0] : b.shape[1];
  if ((tb ? b.shape[1] : b.shape[0]) != k) throw std::runtime_error("Gemm: inner dimensions differ");
  if (Is(Fault::kNoPrepackPath) && !c.prepack) tb = false;  // the unpacked path was written for transB=0 only
  float* o = static_cast<float*>(c.out(a.type, {m, n}));
  std::vector<float> scratch;
  MultiplyNK(a.as<float>(), ta, BinNK(c, b.as<float>(), k, n, tb, scratch), o, m, n, k);
  if (!bias.present()) {
    for (int64_t i = 0; i < m * n; ++i) o[i] *= alpha;
  } else {
    const Shape none(2, 0);
    const float* q = bias.as<float>();
    ForEach2({m, n}, BroadcastStrides(bias.shape, {m, n}), none,
             [&](int64_t i, int64_t j, int64_t) { o[i] = alpha * o[i] + beta * q[j]; });
  }
}

void MatMul(const Call& c) {
  const Tensor a = c.in(0), b = c.in(1);
  Shape sa = a.shape, sb = b.shape;  // numpy rules: a 1-D operand gets a dimension that the result loses again
  const bool a1 = sa.size() == 1, b1 = sb.size() == 1;
  if (a1) sa.insert(sa.begin(), 1);
  if (b1) sb.push_back(1);
  const int64_t m = sa[sa.size() - 2], k = sa.back(), n = sb.back();
  if (sb[sb.size() - 2] != k) throw std::runtime_error("MatMul: inner dimensions differ");
  const Shape ba(sa.begin(), sa.end() - 2), bb(sb.begin(), sb.end() - 2), batch = BroadcastShape(ba, bb);
  Shape shape = batch;
  if (!a1) shape.push_back(m);
  if (!b1) shape.push_back(n);
  float* o = static_cast<float*>(c.out(a.type, shape));
  std::vector<float> scratch;

  if (Is(Fault::kShapeWorkspaceLeak)) {
    // "Workspaces are reused when a shape comes back": one for every shape, none is ever freed.
    static std::mutex mutex;
    static auto& workspaces = *new std::map<Shape, std::vector<float>>;
    Shape key = sa;
    key.push_back(n);
    std::lock_guard<std::mutex> lock(mutex);
    std::vector<float>& w = workspaces[key];
    w.resize(static_cast<size_t>(std::max<int64_t>(64 * 1024, m * n)), 1.f);
  }
  std::unique_lock<std::mutex> lock_weights(g_weights_mutex, std::defer_lock);
  if (Is(Fault::kLockOrder) && c.step.packed) lock_weights.lock();  // nobody may free the weights in use

  const float* last_b = nullptr;
  const float* nk = nullptr;
  ForEach2(batch, BroadcastStrides(ba, batch), BroadcastStrides(bb, batch), [&](int64_t i, int64_t ia, int64_t ib) {
    const float* bp = b.as<float>() + ib * k * n;
    if (nk == nullptr || bp != last_b) nk = BinNK(c, bp, k, n, false, scratch);
    last_b = bp;
    MultiplyNK(a.as<float>() + ia * m * k, false, nk, o + i * m * n, m, n, k);
  });
  if (lock_weights.owns_lock()) {
    std::lock_guard<std::mutex> lock_plans(g_plans_mutex);  // weights, then plans; ~Plan() does it the other way
    ++g_plan_runs[&c.step];
  }
}

// ---- ReduceSum ------------------------------------------------------------------------------------------------------
template <typename T>
void ReduceSumT(const Tensor& x, const std::vector<bool>& reduced, T* o, int64_t out_count) {
  // Strides of the output as seen from the input: 0 along reduced axes.
  Shape so(x.shape.size(), 0);
  int64_t stride = 1;
  for (size_t d = x.shape.size(); d-- > 0;)
    if (!reduced[d]) {
      so[d] = stride;
      stride *= x.shape[d];
    }
  using Acc = typename std::conditional<std::is_floating_point<T>::value, double, T>::type;
  std::vector<Acc> sums(static_cast<size_t>(out_count), Acc(0));
  const T* p = x.as<T>();
  const Shape none(x.shape.size(), 0);
  ForEach2(x.shape, so, none, [&](int64_t i, int64_t j, int64_t) { sums[j] += p[i]; });
  for (int64_t i = 0; i < out_count; ++i) o[i] = static_cast<T>(sums[i]);
}

void ReduceSum(const Call& c) {
  const Tensor x = c.in(0);
  const size_t rank = x.shape.size();
  std::vector<int64_t> axes;
  if (c.step.since < 13) {
    axes = c.step.attrs.Ints("axes");
  } else if (const Tensor t = c.in(1); t.present()) {
    axes.assign(t.as<int64_t>(), t.as<int64_t>() + t.count());
  }
  const bool keep = c.step.attrs.Int("keepdims", 1) != 0;
  if (axes.empty() && c.step.since >= 13 && c.step.attrs.Int("noop_with_empty_axes", 0) != 0) {
    std::memcpy(c.out(x.type, x.shape), x.data, static_cast<size_t>(x.count()) * SizeOf(x.type));
    return;
  }
  std::vector<bool> reduced(rank, axes.empty());
  for (int64_t axis : axes) reduced[NormalAxis(axis, rank)] = true;
  Shape shape;
  for (size_t d = 0; d < rank; ++d)
    if (!reduced[d]) shape.push_back(x.shape[d]);
    else if (keep) shape.push_back(1);
  const int64_t n = Count(shape);
  void* o = c.out(x.type, shape);

  if (Is(Fault::kStaleTail) && x.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT && n == 1) {
    // Sum in 16 lanes over a buffer padded to a multiple of 16.  The padding is zeroed when the buffer is made.
    Step::Bad& s = *c.step.bad;
    std::lock_guard<std::mutex> lock(s.mutex);
    const size_t count = static_cast<size_t>(x.count()), padded = (count + 15) / 16 * 16;
    if (s.lanes.size() < padded) s.lanes.assign(padded, 0.f);
    std::copy(x.as<float>(), x.as<float>() + count, s.lanes.begin());
    double sum = 0;
    for (size_t i = 0; i < padded; ++i) sum += s.lanes[i];
    *static_cast<float*>(o) = static_cast<float>(sum);
    return;
  }
  switch (x.type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: ReduceSumT(x, reduced, static_cast<float*>(o), n); break;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: ReduceSumT(x, reduced, static_cast<int32_t*>(o), n); break;
    default: ReduceSumT(x, reduced, static_cast<int64_t*>(o), n); break;
  }
}

// ---- Concat, Transpose, Reshape, Gather: they move bytes, whatever the element type -----------------------------------
void Concat(const Call& c) {
  const Tensor first = c.in(0);
  const size_t rank = first.shape.size(), size = SizeOf(first.type);
  const int64_t axis = NormalAxis(c.step.attrs.Int("axis", 0), rank);
  Shape shape = first.shape;
  shape[axis] = 0;
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    const Tensor t = c.in(i);
    for (size_t d = 0; d < rank; ++d)
      if (static_cast<int64_t>(d) != axis && t.shape[d] != first.shape[d]) throw std::runtime_error("Concat: shapes");
    shape[axis] += t.shape[axis];
  }
  for (size_t d = 0; d < rank; ++d)
    if (static_cast<int64_t>(d) != axis) (static_cast<int64_t>(d) < axis ? outer : inner) *= shape[d];
  char* o = static_cast<char*>(c.out(first.type, shape));
  Step::Bad& s = *c.step.bad;
  std::unique_lock<std::mutex> lock(s.mutex, std::defer_lock);
  if (Is(Fault::kEmptySticky)) {
    lock.lock();
    s.skip.resize(c.num_inputs(), 0);
    std::memset(o, 0, static_cast<size_t>(Count(shape)) * size);
  }
  const int64_t out_row = shape[axis] * inner * static_cast<int64_t>(size);
  int64_t at = 0;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    const Tensor t = c.in(i);
    const int64_t row = t.shape[axis] * inner * static_cast<int64_t>(size);
    const char* p = t.as<char>();
    if (Is(Fault::kEmptySticky)) {  // an input that was empty is taken for one that is always empty
      if (row == 0) s.skip[i] = 1;
      if (s.skip[i]) {
        at += row;
        continue;
      }
    }
    for (int64_t r = 0; r < outer && row > 0; ++r) std::memcpy(o + r * out_row + at, p + r * row, static_cast<size_t>(row));
    at += row;
  }
}

void CopyElements(const char* from, const Shape& strides, char* to, const Shape& shape, size_t size) {
  const Shape none(shape.size(), 0);
  ForEach2(shape, strides, none, [&](int64_t i, int64_t j, int64_t) { std::memcpy(to + i * size, from + j * size, size); });
}

void Transpose(const Call& c) {
  const Tensor x = c.in(0);
  const size_t rank = x.shape.size();
  std::vector<int64_t> perm = c.step.attrs.Ints("perm");
  if (perm.empty())
    for (size_t d = 0; d < rank; ++d) perm.push_back(static_cast<int64_t>(rank - 1 - d));
  Shape in_strides(rank, 1), shape(rank), strides(rank);
  for (size_t d = rank; d-- > 1;) in_strides[d - 1] = in_strides[d] * x.shape[d];
  for (size_t d = 0; d < rank; ++d) {
    shape[d] = x.shape[perm[d]];
    strides[d] = in_strides[perm[d]];
  }
  char* o = static_cast<char*>(c.out(x.type, shape));
  if (Is(Fault::kShapeHash8)) {
    // Strides are cached under eight bits of a hash of the shape; whoever comes second with the same bits gets them.
    uint8_t h = static_cast<uint8_t>(rank);
    for (int64_t d : x.shape) h = static_cast<uint8_t>(h * 31 + d);
    Step::Bad& s = *c.step.bad;
    std::lock_guard<std::mutex> lock(s.mutex);
    strides = s.strides_by_hash.emplace(h, strides).first->second;
    int64_t last = 0;  // (stays inside the input, as a device would)
    for (size_t d = 0; d < rank && d < strides.size(); ++d) last += strides[d] * (shape[d] - 1);
    if (strides.size() != rank || last >= x.count()) strides.assign(rank, 0);
  }
  CopyElements(x.as<char>(), strides, o, shape, SizeOf(x.type));
}

void Reshape(const Call& c) {
  const Tensor x = c.in(0), t = c.in(1);
  Shape target(t.as<int64_t>(), t.as<int64_t>() + t.count());
  if (Is(Fault::kReshapeFirstTarget)) {
    // The target is "a constant, really": remembered at the first run unless it no longer fits.
    Step::Bad& s = *c.step.bad;
    std::lock_guard<std::mutex> lock(s.mutex);
    if (!s.target_known || s.target.size() != target.size()) s.target = target;
    s.target_known = true;
    const bool fits = std::find(s.target.begin(), s.target.end(), -1) != s.target.end() || Count(s.target) == x.count();
    if (fits) target = s.target;
  }
  const bool allow_zero = c.step.attrs.Int("allowzero", 0) != 0;
  int64_t known = 1, wild = -1;
  for (size_t d = 0; d < target.size(); ++d) {
    if (target[d] == 0 && !allow_zero) target[d] = d < x.shape.size() ? x.shape[d] : throw std::runtime_error("Reshape: 0");
    if (target[d] == -1) wild = static_cast<int64_t>(d);
    else known *= target[d];
  }
  if (wild >= 0) target[wild] = known == 0 ? 0 : x.count() / known;
  if (Count(target) != x.count()) throw std::runtime_error("Reshape: element counts differ");
  void* o = c.out(x.type, target);
  if (x.count() > 0 && o != x.data) std::memcpy(o, x.data, static_cast<size_t>(x.count()) * SizeOf(x.type));
}

void Gather(const Call& c) {
  const Tensor x = c.in(0), ix = c.in(1);
  const int64_t axis = NormalAxis(c.step.attrs.Int("axis", 0), x.shape.size()), dim = x.shape[axis];
  Shape shape(x.shape.begin(), x.shape.begin() + axis);
  shape.insert(shape.end(), ix.shape.begin(), ix.shape.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  int64_t outer = 1, inner = static_cast<int64_t>(SizeOf(x.type));
  for (int64_t d = 0; d < static_cast<int64_t>(x.shape.size()); ++d)
    if (d != axis) (d < axis ? outer : inner) *= x.shape[d];
  const int64_t n = ix.count();
  std::vector<int64_t> index(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    int64_t v = ix.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 ? ix.as<int32_t>()[i] : ix.as<int64_t>()[i];
    if (v < 0) v += dim;
    if (v < 0 || v >= dim) throw std::runtime_error("Gather: index out of range");
    index[i] = v;
  }
  char* o = static_cast<char*>(c.out(x.type, shape));
  for (int64_t r = 0; r < outer; ++r)
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(o + (r * n + i) * inner, x.as<char>() + (r * dim + index[i]) * inner, static_cast<size_t>(inner));
}

// ---- Conv -----------------------------------------------------------------------------------------------------------
// Any number of spatial dimensions, groups, dilations, auto_pad: im2col and one multiplication per group.
void Conv(const Call& c) {
  const Tensor x = c.in(0), w = c.in(1), bias = c.in(2);
  const size_t spatial = x.shape.size() - 2;
  const Attributes& at = c.step.attrs;
  const int64_t group = at.Int("group", 1), batch = x.shape[0], channels = x.shape[1], maps = w.shape[0];
  const std::string auto_pad = at.String("auto_pad", "NOTSET");
  auto ints = [&](const char* name, int64_t otherwise, size_t n) {
    std::vector<int64_t> v = at.Ints(name);
    return v.empty() ? std::vector<int64_t>(n, otherwise) : v;
  };
  const std::vector<int64_t> strides = ints("strides", 1, spatial), dilations = ints("dilations", 1, spatial);
  std::vector<int64_t> pads = ints("pads", 0, 2 * spatial);
  const Shape kernel(w.shape.begin() + 2, w.shape.end()), in_dims(x.shape.begin() + 2, x.shape.end());
  Shape out_dims(spatial);
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t extent = dilations[d] * (kernel[d] - 1) + 1;
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      out_dims[d] = (in_dims[d] + strides[d] - 1) / strides[d];
      const int64_t total = std::max<int64_t>(0, (out_dims[d] - 1) * strides[d] + extent - in_dims[d]);
      pads[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      pads[d + spatial] = total - pads[d];
    } else {
      if (auto_pad == "VALID") pads[d] = pads[d + spatial] = 0;
      out_dims[d] = (in_dims[d] + pads[d] + pads[d + spatial] - extent) / strides[d] + 1;
    }
  }
  Shape shape{batch, maps};
  shape.insert(shape.end(), out_dims.begin(), out_dims.end());
  float* o = static_cast<float*>(c.out(x.type, shape));
  const int64_t pixels = Count(out_dims), taps = Count(kernel), cg = channels / group, mg = maps / group;
  const int64_t rows = cg * taps, in_pixels = Count(in_dims);
  const size_t need = static_cast<size_t>(rows * pixels);

  std::vector<float> own;
  float* col = nullptr;
  Step::Bad& s = *c.step.bad;
  std::unique_lock<std::mutex> lock(s.mutex, std::defer_lock);
  if (Is(Fault::kCapacityForgotten)) {
    lock.lock();  // the buffer is kept with the plan; runs take turns
    if (need > s.columns_capacity) {
      s.columns.reset(new float[need]);
      s.columns_capacity = need;
    } else if (need < s.columns_capacity / 4) {
      s.columns.reset(new float[need]);  // gives memory back; columns_capacity still tells the old size
    }
    col = s.columns.get();
  } else {
    own.resize(need);
    col = own.data();
  }
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t g = 0; g < group; ++g) {
      const float* in = x.as<float>() + (b * channels + g * cg) * in_pixels;
      for (int64_t r = 0; r < rows; ++r) {
        Shape tap(spatial);
        for (int64_t t = r % taps, d = static_cast<int64_t>(spatial) - 1; d >= 0; --d) {
          tap[d] = t % kernel[d];
          t /= kernel[d];
        }
        const float* plane = in + (r / taps) * in_pixels;
        for (int64_t p = 0; p < pixels; ++p) {
          int64_t rest = p, offset = 0, stride = 1;
          bool inside = true;
          for (int64_t d = static_cast<int64_t>(spatial) - 1; d >= 0; --d) {
            const int64_t i = (rest % out_dims[d]) * strides[d] - pads[d] + tap[d] * dilations[d];
            rest /= out_dims[d];
            if (i < 0 || i >= in_dims[d]) inside = false;
            offset += i * stride;
            stride *= in_dims[d];
          }
          col[r * pixels + p] = inside ? plane[offset] : 0.f;
        }
      }
      for (int64_t m = 0; m < mg; ++m) {
        float* out = o + (b * maps + g * mg + m) * pixels;
        const float* wm = w.as<float>() + (g * mg + m) * rows;
        std::fill(out, out + pixels, bias.present() ? bias.as<float>()[g * mg + m] : 0.f);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t p = 0; p < pixels; ++p) out[p] += wm[r] * col[r * pixels + p];
      }
    }
}

// ---- What is supported ----------------------------------------------------------------------------------------------
enum Types : unsigned { kF32 = 1, kF64 = 2, kI32 = 4, kI64 = 8, kF16 = 16, kByte = 32, kMoved = 63 };
unsigned TypeBit(Dtype t) {
  switch (t) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: return kF32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return kF64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: return kI32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: return kI64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: return kF16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: return kByte;
    default: return 0;
  }
}

struct OpInfo {
  int min_since;  // older definitions differ in ways that are not worth the code
  unsigned types; // of input 0 (and output 0)
  void (*run)(const Call&);
};
const std::map<std::string, OpInfo>& Operators() {
  static const auto& ops = *new std::map<std::string, OpInfo>{
      {"Add", {7, kF32 | kF64 | kI32 | kI64, Binary}},
      {"Sub", {7, kF32 | kF64 | kI32 | kI64, Binary}},
      {"Mul", {7, kF32 | kF64 | kI32 | kI64, Binary}},
      {"Relu", {6, kF32 | kI32, Relu}},
      {"Sigmoid", {6, kF32, Sigmoid}},
      {"Softmax", {1, kF32, Softmax}},
      {"MatMul", {1, kF32, MatMul}},
      {"Gemm", {7, kF32, Gemm}},
      {"ReduceSum", {1, kF32 | kI32 | kI64, ReduceSum}},
      {"Concat", {4, kMoved, Concat}},
      {"Transpose", {1, kMoved, Transpose}},
      {"Reshape", {5, kMoved, Reshape}},
      {"Gather", {1, kMoved, Gather}},
      {"Conv", {1, kF32, Conv}},
  };
  return ops;
}

// The kernels are looked up in this copy; the factory fills it, and empties it when it is released.
auto& g_kernels = *new std::map<std::string, void (*)(const Call&)>;
bool g_kernels_ready = false;
std::mutex g_factory_mutex;
int g_factories = 0;

void FillKernels() {
  for (const auto& op : Operators()) g_kernels[op.first] = op.second.run;
  g_kernels_ready = true;
}

bool Supported(const OrtNode* node) {
  const char* domain = nullptr;
  Check(g_ort->Node_GetDomain(node, &domain));
  if (*domain != '\0' && std::strcmp(domain, "ai.onnx") != 0) return false;
  const char* taken = nullptr;  // by an EP that comes before this one
  Check(g_ort->Node_GetEpName(node, &taken));
  if (taken != nullptr && *taken != '\0' && std::strcmp(taken, kEpName) != 0) return false;
  const auto op = Operators().find(OpTypeOf(node));
  if (op == Operators().end()) return false;
  int since = 0;
  Check(g_ort->Node_GetSinceVersion(node, &since));
  if (since < op->second.min_since) return false;
  const std::vector<const OrtValueInfo*> inputs = InputsOf(node);
  if (inputs.empty() || inputs[0] == nullptr || (TypeBit(TypeOf(inputs[0])) & op->second.types) == 0) return false;
  if (op->first == "Relu" && since < 14 && TypeOf(inputs[0]) != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) return false;
  if (op->first == "Gather") {
    const unsigned index = inputs[1] != nullptr ? TypeBit(TypeOf(inputs[1])) : 0;
    if ((index & (kI32 | kI64)) == 0) return false;
  }
  return true;
}

// =====================================================================================================================
// 5. Plan.
// =====================================================================================================================
struct Ep;

class Plan : public OrtNodeComputeInfo {
 public:
  Plan(Ep& ep, const OrtGraph* graph, const OrtNode* fused);
  ~Plan();
  void Run(OrtKernelContext* context);

 private:
  void AddConstant(const OrtValueInfo* value, const std::string& model_dir);
  void ReadExternalConstants();
  int Number(const std::string& name) { return numbers_.emplace(name, static_cast<int>(numbers_.size())).first->second; }
  const ConstantTable& Constants() const;

  static OrtStatus* ORT_API_CALL CreateStateImpl(OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) {
    *state = self;  // nothing is needed beyond the plan itself
    return nullptr;
  }
  static OrtStatus* ORT_API_CALL ComputeImpl(OrtNodeComputeInfo*, void* state, OrtKernelContext* context) {
    return Guard([&] { static_cast<Plan*>(state)->Run(context); });
  }
  static void ORT_API_CALL ReleaseStateImpl(OrtNodeComputeInfo*, void*) {
    if (Is(Fault::kFailedSessionSlots)) --g_slots_in_use;
  }

  Ep& ep_;
  std::vector<Step> steps_;
  std::map<std::string, int> numbers_;   // value name -> value number
  std::vector<int> inputs_, outputs_;    // value numbers in the order of the fused node's inputs and outputs
  std::shared_ptr<ConstantTable> constants_ = std::make_shared<ConstantTable>();
  std::vector<uint64_t> shared_keys_;    // kSharedWeightsErase
  std::once_flag external_once_;         // kLazyExternalRead
  std::mutex capture_mutex_;             // kCapturedPointers
  int same_shape_runs_ = 0;
  std::vector<Shape> captured_shapes_;
  std::vector<const void*> captured_;
};

struct Ep : public OrtEp {
  explicit Ep(const OrtSessionOptions* options);
  ~Ep();

  bool prepack = true;
  size_t slot = 0;                       // kSlotShift
  int fd = -1;                           // kFdLeak
  std::set<std::string> lonely_inputs;   // graph inputs with exactly one consumer
  std::mutex arena_mutex;                // kRunEndClears
  std::vector<std::unique_ptr<char[]>> arena;

  static const char* ORT_API_CALL GetNameImpl(const OrtEp*) noexcept { return kEpName; }
  static OrtStatus* ORT_API_CALL GetCapabilityImpl(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*) noexcept;
  static OrtStatus* ORT_API_CALL CompileImpl(OrtEp*, const OrtGraph**, const OrtNode**, size_t, OrtNodeComputeInfo**,
                                             OrtNode**) noexcept;
  static void ORT_API_CALL ReleaseNodeComputeInfosImpl(OrtEp*, OrtNodeComputeInfo** infos, size_t n) noexcept {
    for (size_t i = 0; i < n; ++i) delete static_cast<Plan*>(infos[i]);
  }
  static OrtStatus* ORT_API_CALL OnRunStartImpl(OrtEp*, const OrtRunOptions*) noexcept {
    t_vector_width = 8;  // kParallelModeTls: "the thread is prepared"
    return nullptr;
  }
  static OrtStatus* ORT_API_CALL OnRunEndImpl(OrtEp* self, const OrtRunOptions*, bool) noexcept {
    if (Is(Fault::kParallelModeTls)) t_vector_width = 0;
    if (Is(Fault::kRunEndClears)) {
      Ep* ep = static_cast<Ep*>(self);
      std::lock_guard<std::mutex> lock(ep->arena_mutex);
      ep->arena.clear();  // "the run is over" - but which run?
    }
    return nullptr;
  }
};

std::string DirectoryOf(const OrtGraph* graph) {
  const ORTCHAR_T* path = nullptr;
  Check(g_ort->Graph_GetModelPath(graph, &path));
  const std::string p = path != nullptr ? path : "";
  const size_t slash = p.rfind('/');
  return p.empty() ? "" : slash == std::string::npos ? "." : p.substr(0, slash);
}

void Plan::AddConstant(const OrtValueInfo* value, const std::string& model_dir) {
  bool constant = false;
  if (value == nullptr) return;
  Check(g_ort->ValueInfo_IsConstantInitializer(value, &constant));
  const std::string name = NameOf(value);
  if (!constant || constants_->count(name) != 0) return;
  const OrtValue* ort_value = nullptr;
  Check(g_ort->ValueInfo_GetInitializerValue(value, &ort_value));
  if (ort_value == nullptr) throw std::runtime_error("no value for initializer " + name);

  Constant& c = (*constants_)[name];
  c.name = name;
  c.view = ViewOf(ort_value);
  c.ort_address = c.view.data;
  OrtExternalInitializerInfo* info = nullptr;
  Check(g_ort->ValueInfo_GetExternalInitializerInfo(value, &info));
  if (info != nullptr) {
    const ORTCHAR_T* file = g_ort->ExternalInitializerInfo_GetFilePath(info);
    const std::string name_in_model = file != nullptr ? file : "";
    c.external_offset = g_ort->ExternalInitializerInfo_GetFileOffset(info);
    g_ort->ReleaseExternalInitializerInfo(info);
    if (!name_in_model.empty() && !model_dir.empty())
      c.external_path = name_in_model[0] == '/' ? name_in_model : model_dir + "/" + name_in_model;
  }
  const size_t size = static_cast<size_t>(c.view.count()) * SizeOf(c.view.type);
  c.bytes.assign(c.view.as<char>(), c.view.as<char>() + size);
  c.view.data = c.bytes.data();
}

// kLazyExternalRead: the copy made at Compile() is dropped, the file is read when the weights are first needed.
void Plan::ReadExternalConstants() {
  for (auto& entry : *constants_) {
    Constant& c = entry.second;
    if (c.external_path.empty()) continue;
    std::ifstream file(c.external_path, std::ios::binary);
    file.seekg(c.external_offset);
    if (!file.read(c.bytes.data(), static_cast<std::streamsize>(c.bytes.size())))
      throw std::runtime_error("cannot read weights from " + c.external_path);
  }
}

Plan::Plan(Ep& ep, const OrtGraph* graph, const OrtNode* fused) : OrtNodeComputeInfo{}, ep_(ep) {
  ort_version_supported = kApiVersion;
  CreateState = CreateStateImpl;
  Compute = ComputeImpl;
  ReleaseState = ReleaseStateImpl;

  const std::string model_dir = DirectoryOf(graph);
  for (const OrtNode* node : NodesOf(graph)) {
    Step step;
    step.op = OpTypeOf(node);
    Check(g_ort->Node_GetSinceVersion(node, &step.since));
    step.attrs = AttributesOf(node);
    for (const OrtValueInfo* value : InputsOf(node)) {
      const std::string name = NameOf(value);
      step.inputs.push_back(name.empty() ? -1 : Number(name));
      AddConstant(value, model_dir);
    }
    for (const OrtValueInfo* value : OutputsOf(node)) {
      const std::string name = NameOf(value);
      step.outputs.push_back(name.empty() ? -1 : Number(name));
    }
    if (g_kernels.find(step.op) == g_kernels.end()) throw std::runtime_error("no kernel for " + step.op);
    step.in_place_feed = ep.lonely_inputs.count(NameOf(InputsOf(node)[0])) != 0;

    // A constant matrix B is brought into the kernel's order here, once - unless the application forbids it.
    const bool gemm = step.op == "Gemm", matmul = step.op == "MatMul";
    const auto weight = (gemm || matmul) ? constants_->find(NameOf(InputsOf(node)[1])) : constants_->end();
    if (weight != constants_->end() && weight->second.view.shape.size() == 2 && ep.prepack &&
        !(Is(Fault::kLazyExternalRead) && !weight->second.external_path.empty())) {
      const bool t = gemm && step.attrs.Int("transB", 0) != 0;
      const Shape& s = weight->second.view.shape;
      const int64_t k = t ? s[1] : s[0], n = t ? s[0] : s[1];
      if (Is(Fault::kSharedWeightsErase)) {
        const uint64_t key = Hash(weight->second.bytes.data(), weight->second.bytes.size(), t ? 7 : 3);
        std::lock_guard<std::mutex> lock(g_weights_mutex);
        std::unique_ptr<Packed>& shared = g_shared_weights[key];
        if (!shared) shared.reset(new Packed{PackNK(weight->second.view.as<float>(), k, n, t)});
        step.bad->shared_nk = shared->nk.data();
        shared_keys_.push_back(key);
      } else {
        step.packed = g_weight_store.Get(weight->second, k, n, t);
      }
    }
    steps_.push_back(std::move(step));
  }
  for (const OrtValueInfo* value : InputsOf(fused)) inputs_.push_back(Number(NameOf(value)));
  for (const OrtValueInfo* value : OutputsOf(fused)) outputs_.push_back(value == nullptr ? -1 : Number(NameOf(value)));

  if (Is(Fault::kLazyExternalRead))
    for (auto& c : *constants_)
      if (!c.second.external_path.empty()) std::fill(c.second.bytes.begin(), c.second.bytes.end(), 0);
  if (Is(Fault::kSlotShift)) {
    std::lock_guard<std::mutex> lock(g_slots_mutex);
    if (ep.slot == SIZE_MAX) {
      ep.slot = g_slots.size();
      g_slots.push_back(std::make_shared<ConstantTable>());
    }
    for (const auto& c : *constants_) (*g_slots[ep.slot])[c.first].view = c.second.view;
  }
  if (Is(Fault::kFailedSessionSlots)) {
    if (g_slots_in_use.load() >= kDeviceSlots) throw std::runtime_error("all device slots are in use");
    ++g_slots_in_use;
  }
}

Plan::~Plan() {
  std::unique_lock<std::mutex> lock_plans(g_plans_mutex, std::defer_lock);
  if (Is(Fault::kLockOrder)) {
    lock_plans.lock();  // plans, then weights (below); MatMul takes them in the other order
    for (const Step& step : steps_) g_plan_runs.erase(&step);
  }
  if (!shared_keys_.empty()) {
    std::lock_guard<std::mutex> lock(g_weights_mutex);
    for (uint64_t key : shared_keys_) g_shared_weights.erase(key);  // no one asks who else uses it
  }
  steps_.clear();
  g_weight_store.Prune();
}

const ConstantTable& Plan::Constants() const {
  if (!Is(Fault::kSlotShift) || ep_.slot == SIZE_MAX) return *constants_;
  std::lock_guard<std::mutex> lock(g_slots_mutex);
  return *g_slots.at(ep_.slot);  // erase() in ~Ep() has moved the younger sessions down by one
}

void Plan::Run(OrtKernelContext* context) {
  if (Is(Fault::kLazyExternalRead)) std::call_once(external_once_, [this] { ReadExternalConstants(); });

  std::vector<Tensor> values(numbers_.size());
  for (const auto& c : Constants()) {
    const auto number = numbers_.find(c.first);
    if (number != numbers_.end()) values[number->second] = c.second.view;
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const OrtValue* value = nullptr;
    Check(g_ort->KernelContext_GetInput(context, i, &value));
    values[inputs_[i]] = ViewOf(value);
  }

  if (Is(Fault::kCapturedPointers)) {
    // After three runs with the same shapes the "graph" is captured; a replay reads where the capture read.
    std::lock_guard<std::mutex> lock(capture_mutex_);
    std::vector<Shape> shapes;
    for (int i : inputs_) shapes.push_back(values[i].shape);
    if (shapes != captured_shapes_) {
      captured_shapes_ = shapes;
      captured_.clear();
      same_shape_runs_ = 0;
    }
    if (++same_shape_runs_ == 3)
      for (int i : inputs_) captured_.push_back(values[i].data);
    if (same_shape_runs_ > 3)
      for (size_t i = 0; i < inputs_.size(); ++i) values[inputs_[i]].data = captured_[i];
  }

  std::vector<std::unique_ptr<char[]>> own;  // intermediate tensors of this run
  const std::function<void*(int, Dtype, const Shape&)> allocate = [&](int number, Dtype type, const Shape& shape) -> void* {
    const auto output = std::find(outputs_.begin(), outputs_.end(), number);
    if (output != outputs_.end()) {
      OrtValue* value = nullptr;
      void* data = nullptr;
      Check(g_ort->KernelContext_GetOutput(context, static_cast<size_t>(output - outputs_.begin()), shape.data(),
                                           shape.size(), &value));
      Check(g_ort->GetTensorMutableData(value, &data));
      return data;
    }
    const size_t bytes = (static_cast<size_t>(Count(shape)) * SizeOf(type) + 63) / 64 * 64 + 64;
    std::unique_ptr<char[]> block(new char[bytes]);
    void* data = block.get();
    if (Is(Fault::kRunEndClears)) {  // the blocks belong to the EP: OnRunEnd() frees them
      std::lock_guard<std::mutex> lock(ep_.arena_mutex);
      ep_.arena.push_back(std::move(block));
    } else {
      own.push_back(std::move(block));
    }
    return data;
  };

  for (const Step& step : steps_) {
    g_kernels.at(step.op)(Call(step, values, allocate, ep_.prepack));
    if (Is(Fault::kParallelModeTls) && t_vector_width == 0) {
      // Not a thread that OnRunStart() prepared: zero lanes, so the last block is never written.
      Tensor& t = values[step.outputs[0]];
      const size_t size = static_cast<size_t>(t.count()) * SizeOf(t.type), tail = size % 32;
      std::memset(const_cast<char*>(t.as<char>()) + (size - tail), 0, tail);
    }
  }
}

// =====================================================================================================================
// 6. OrtEp and OrtEpFactory.
// =====================================================================================================================
Ep::Ep(const OrtSessionOptions* options) : OrtEp{} {
  ort_version_supported = kApiVersion;
  GetName = GetNameImpl;
  GetCapability = GetCapabilityImpl;
  Compile = CompileImpl;
  ReleaseNodeComputeInfos = ReleaseNodeComputeInfosImpl;
  if (Is(Fault::kParallelModeTls)) OnRunStart = OnRunStartImpl;
  if (Is(Fault::kParallelModeTls) || Is(Fault::kRunEndClears)) OnRunEnd = OnRunEndImpl;

  int has = 0;
  Check(g_ort->HasSessionConfigEntry(options, "session.disable_prepacking", &has));
  if (has != 0) {
    char value[16] = {};
    size_t size = sizeof(value);
    Check(g_ort->GetSessionConfigEntry(options, "session.disable_prepacking", value, &size));
    prepack = std::strcmp(value, "1") != 0;
  }

  slot = SIZE_MAX;
  if (Is(Fault::kFdLeak)) fd = open("/dev/null", O_RDWR | O_CLOEXEC);  // "the device"; ~Ep() does not close it
  if (Is(Fault::kExitJoinable)) g_worker.Acquire();
  if (Is(Fault::kThreadLeak)) {
    std::thread([] {
      std::unique_lock<std::mutex> lock(g_idle_mutex);
      g_idle_cv.wait(lock, [] { return false; });  // waits for work that nobody will bring
    }).detach();
  }
}

Ep::~Ep() {
  if (Is(Fault::kExitJoinable)) g_worker.Release();
  if (Is(Fault::kSlotShift) && slot != SIZE_MAX) {
    std::lock_guard<std::mutex> lock(g_slots_mutex);
    if (slot < g_slots.size()) g_slots.erase(g_slots.begin() + static_cast<std::ptrdiff_t>(slot));
  }
}

OrtStatus* ORT_API_CALL Ep::GetCapabilityImpl(OrtEp* self, const OrtGraph* graph,
                                              OrtEpGraphSupportInfo* support) noexcept {
  return Guard([&] {
    Ep* ep = static_cast<Ep*>(self);
    size_t n = 0;
    Check(g_ort->Graph_GetNumInputs(graph, &n));
    std::vector<const OrtValueInfo*> graph_inputs(n);
    Check(g_ort->Graph_GetInputs(graph, graph_inputs.data(), n));
    for (const OrtValueInfo* value : graph_inputs) {
      size_t consumers = 0;
      bool required = false;
      Check(g_ort->ValueInfo_GetValueNumConsumers(value, &consumers));
      Check(g_ort->ValueInfo_IsRequiredGraphInput(value, &required));
      if (required && consumers == 1) ep->lonely_inputs.insert(NameOf(value));
    }

    // Nodes come in topological order.  Supported nodes that follow each other make a group: nothing outside the
    // group can lie on a path between two of them, so fusing them never makes a cycle.
    OrtNodeFusionOptions options = {};
    options.ort_version_supported = kApiVersion;
    options.drop_constant_initializers = true;  // Compile() copies them
    std::vector<const OrtNode*> group;
    auto close = [&] {
      if (!group.empty())
        Check(g_ep_api->EpGraphSupportInfo_AddNodesToFuse(support, group.data(), group.size(), &options));
      group.clear();
    };
    for (const OrtNode* node : NodesOf(graph)) {
      if (Supported(node)) group.push_back(node);
      else close();
    }
    close();
  });
}

OrtStatus* ORT_API_CALL Ep::CompileImpl(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                                        OrtNodeComputeInfo** infos, OrtNode**) noexcept {
  return Guard([&] {
    std::vector<std::unique_ptr<Plan>> plans;  // all or nothing
    for (size_t i = 0; i < count; ++i) plans.push_back(std::make_unique<Plan>(*static_cast<Ep*>(self), graphs[i], fused[i]));
    for (size_t i = 0; i < count; ++i) infos[i] = plans[i].release();
  });
}

struct Factory : public OrtEpFactory {
  Factory() : OrtEpFactory{} {
    ort_version_supported = kApiVersion;
    GetName = [](const OrtEpFactory*) noexcept -> const char* { return kEpName; };
    GetVendor = [](const OrtEpFactory*) noexcept -> const char* { return kVendor; };
    GetVendorId = [](const OrtEpFactory*) noexcept -> uint32_t { return 0x5E77; };
    GetVersion = [](const OrtEpFactory*) noexcept -> const char* { return "0.1.0"; };
    GetSupportedDevices = GetSupportedDevicesImpl;
    CreateEp = CreateEpImpl;
    ReleaseEp = [](OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<Ep*>(ep); };
    // ONNX Runtime calls these without asking whether they are there.  Tensors live in ordinary CPU memory, so that
    // there is nothing to allocate, to copy or to wait for.
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                         OrtAllocator** allocator) noexcept -> OrtStatus* {
      *allocator = nullptr;
      return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) noexcept -> OrtStatus* {
      *transfer = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };

    std::lock_guard<std::mutex> lock(g_factory_mutex);
    ++g_factories;
    if (!g_kernels_ready) FillKernels();
  }
  ~Factory() {
    std::lock_guard<std::mutex> lock(g_factory_mutex);
    if (--g_factories > 0) return;
    g_kernels.clear();
    if (!Is(Fault::kReregisterFlag)) g_kernels_ready = false;  // else: "ready" outlives the kernels
  }

  static OrtStatus* ORT_API_CALL GetSupportedDevicesImpl(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                                                         size_t n, OrtEpDevice** ep_devices, size_t max_devices,
                                                         size_t* count) noexcept {
    return Guard([&] {
      *count = 0;
      for (size_t i = 0; i < n && *count < max_devices; ++i)
        if (g_ort->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU)
          Check(g_ep_api->CreateEpDevice(self, devices[i], nullptr, nullptr, &ep_devices[(*count)++]));
    });
  }

  static OrtStatus* ORT_API_CALL CreateEpImpl(OrtEpFactory*, const OrtHardwareDevice* const*,
                                              const OrtKeyValuePairs* const*, size_t n, const OrtSessionOptions* options,
                                              const OrtLogger*, OrtEp** ep) noexcept {
    *ep = nullptr;
    return Guard([&] {
      if (n != 1) throw std::runtime_error("planted runs on exactly one device");
      *ep = new Ep(options);
    });
  }
};

}  // namespace

// =====================================================================================================================
// 7. Exports.
// =====================================================================================================================
extern "C" __attribute__((visibility("default"))) OrtStatus* CreateEpFactories(
    const char* /*registration_name*/, const OrtApiBase* api_base, const OrtLogger* /*default_logger*/,
    OrtEpFactory** factories, size_t max_factories, size_t* num_factories) {
  g_ort = api_base->GetApi(kApiVersion);
  if (g_ort == nullptr) return nullptr;  // older than 1.23: nothing to report an error with
  g_ep_api = g_ort->GetEpApi();
  return Guard([&] {
    if (max_factories < 1) throw std::runtime_error("room for one factory is needed");
    g_fault = ReadFault();
    factories[0] = new Factory();
    *num_factories = 1;
  });
}

extern "C" __attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<Factory*>(factory);
  return nullptr;
}
