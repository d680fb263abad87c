// TensorFlow operators over the collectives: TriremeAllReduce, TriremeBroadcast, TriremeAllGather.
//
// A kernel blocks the thread of TensorFlow that runs it, while the others go on with what is ready, such
// as the rest of the backward. Each operator takes `order`, the handle of a variable that nothing reads:
// by it TensorFlow keeps the operators of a tf.function in the program's order, the same on all ranks,
// and one at a time.

#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "python/tensorflow_operators/api.h"
#include "python/tensorflow_operators/collectives.h"

namespace trireme::tensorflow {
namespace {

// TensorFlow's registry is one per process, so its operators find the ranks here.
struct Process {
  Api api{};
  std::string problem;  // why there are no operators
  std::mutex mutex;
  std::shared_ptr<Collectives> collectives;  // under mutex; calls under way keep it
};

Process& process() {
  static Process* instance = new Process;  // kernels outlive static destructors
  return *instance;
}

const Api& api() { return process().api; }

std::shared_ptr<Collectives> collectives() {
  Process& here = process();
  const std::lock_guard lock(here.mutex);
  if (here.collectives) return here.collectives;
  throw Failure(Code::kFailedPrecondition, "no ranks: call trireme.tensorflow.init() first");
}

struct Deleter {
  void operator()(Status* status) const { api().delete_status(status); }
  void operator()(Tensor* tensor) const { api().delete_tensor(tensor); }
  void operator()(ShapeHandle* shape) const { api().delete_shape(shape); }
};
using OwnedStatus = std::unique_ptr<Status, Deleter>;
using OwnedTensor = std::unique_ptr<Tensor, Deleter>;

OwnedStatus make_status() { return OwnedStatus(api().new_status()); }

void check(const OwnedStatus& status) {
  const Code code = api().get_code(status.get());
  if (code != Code::kOk) throw Failure(code, api().message(status.get()));
}

// A node of a graph.
struct Kernel {
  std::string operation;
  std::string label;
  std::int32_t code = 0;
};

// A call of it.
struct Call {
  Context* context;
  Request request;
  std::vector<OwnedTensor> tensors;  // what `request` points into
};

void fail(Context* context, Code code, const char* text) {
  const OwnedStatus status = make_status();
  api().set_status(status.get(), code, text);
  api().fail(context, status.get());
}

Tensor* add_output(Call& call, int index, const Piece& piece, std::size_t bytes) {
  const OwnedStatus status = make_status();
  call.tensors.emplace_back(
      api().allocate_output(call.context, index, piece.type, piece.dims.data(),
                            static_cast<int>(piece.dims.size()), bytes, status.get()));
  check(status);
  return call.tensors.back().get();
}

// The inputs behind `order`, and outputs like them.
void read_inputs(Call& call, bool has_outputs) {
  const int num_inputs = api().num_inputs(call.context);
  for (int i = 1; i < num_inputs; ++i) {
    const OwnedStatus status = make_status();
    Tensor* tensor = nullptr;
    api().get_input(call.context, i, &tensor, status.get());
    check(status);
    call.tensors.emplace_back(tensor);
    Piece piece{.input = api().tensor_data(tensor),
                .output = nullptr,
                .bytes = api().tensor_bytes(tensor),
                .type = api().tensor_type(tensor),
                .dims = {}};
    for (int axis = 0; axis < api().num_dims(tensor); ++axis) {
      piece.dims.push_back(api().dim(tensor, axis));
    }
    if (has_outputs) piece.output = api().tensor_data(add_output(call, i - 1, piece, piece.bytes));
    call.request.pieces.push_back(std::move(piece));
  }
}

using Run = void (*)(Call&);

// Runs `run`; whatever it throws becomes the operator's error.
void compute(void* kernel, Context* context, Run run) {
  const auto& node = *static_cast<const Kernel*>(kernel);
  try {
    Call call{.context = context,
              .request = {.operation = node.operation,
                          .label = node.label,
                          .code = node.code,
                          .pieces = {}},
              .tensors = {}};
    run(call);
  } catch (const Failure& failure) {
    fail(context, failure.code, failure.what());
  } catch (const std::exception& failure) {
    fail(context, Code::kInternal, failure.what());
  }
}

void all_reduce(void* kernel, Context* context) {
  compute(kernel, context, [](Call& call) {
    const std::shared_ptr<Collectives> ranks = collectives();
    read_inputs(call, true);
    ranks->all_reduce(call.request);
  });
}

void broadcast(void* kernel, Context* context) {
  compute(kernel, context, [](Call& call) {
    const std::shared_ptr<Collectives> ranks = collectives();
    read_inputs(call, true);
    ranks->broadcast(call.request);
  });
}

void all_gather(void* kernel, Context* context) {
  compute(kernel, context, [](Call& call) {
    const std::shared_ptr<Collectives> ranks = collectives();
    read_inputs(call, false);
    ranks->all_gather(call.request, [&call](std::int64_t num_rows) {
      Piece all = call.request.pieces.front();
      all.dims[0] = num_rows;
      const auto bytes = static_cast<std::size_t>(num_rows * row_bytes(all));
      return api().tensor_data(add_output(call, 0, all, bytes));
    });
  });
}

// code: the attribute that goes into Request::code; null for none.
void* make_kernel(Construction* construction, const char* operation, const char* code) {
  auto kernel = std::make_unique<Kernel>();
  kernel->operation = operation;
  const OwnedStatus status = make_status();
  char label[256] = {};
  api().get_string(construction, "label", label, sizeof label - 1, status.get());
  kernel->label = label;
  if (code != nullptr && api().get_code(status.get()) == Code::kOk) {
    api().get_int(construction, code, &kernel->code, status.get());
  }
  if (api().get_code(status.get()) != Code::kOk) {
    api().construction_failure(construction, status.get());
  }
  return kernel.release();
}

void destroy_kernel(void* kernel) { delete static_cast<Kernel*>(kernel); }

// Output i is like input i + 1.
void keep_shapes(ShapeContext* context, Status* status) {
  const std::unique_ptr<ShapeHandle, Deleter> shape(api().new_shape());
  const auto num_inputs = static_cast<int>(api().num_shapes(context));
  for (int i = 1; i < num_inputs; ++i) {
    api().get_shape(context, i, shape.get(), status);
    if (api().get_code(status) != Code::kOk) return;
    api().set_shape(context, i - 1, shape.get(), status);
    if (api().get_code(status) != Code::kOk) return;
  }
}

void forget_shapes(ShapeContext* context, Status* status) {
  api().set_unknown_shape(context, status);
}

struct Definition {
  const char* name;
  std::vector<const char*> attrs;
  std::vector<const char*> inputs;
  const char* output;
  ShapeFunction shapes;
  void* (*create)(Construction*);
  ComputeFunction compute;
};

void define(const Definition& definition) {
  OpBuilder* op = api().new_op(definition.name);
  for (const char* attr : definition.attrs) api().add_attr(op, attr);
  api().add_input(op, "order: resource");
  for (const char* input : definition.inputs) api().add_input(op, input);
  api().add_output(op, definition.output);
  api().set_stateful(op, true);
  api().set_shapes(op, definition.shapes);
  const OwnedStatus status = make_status();
  api().register_op(op, status.get());
  check(status);
  KernelBuilder* kernel = api().new_kernel(definition.name, "CPU", definition.create,
                                           definition.compute, destroy_kernel);
  api().register_kernel(definition.name, kernel, status.get());
  check(status);
}

void define_all() {
  define({.name = "TriremeAllReduce",
          .attrs = {"N: int >= 1", "T: {half, bfloat16, float, double, int32, int64}",
                    "reduction: int", "label: string = ''"},
          .inputs = {"values: N * T"},
          .output = "results: N * T",
          .shapes = keep_shapes,
          .create = [](Construction* c) { return make_kernel(c, "all_reduce", "reduction"); },
          .compute = all_reduce});
  define({.name = "TriremeBroadcast",
          .attrs = {"N: int >= 1", "T: {half, bfloat16, float, double, int32, int64, uint8, bool}",
                    "root: int", "label: string = ''"},
          .inputs = {"values: N * T"},
          .output = "results: N * T",
          .shapes = keep_shapes,
          .create = [](Construction* c) { return make_kernel(c, "broadcast", "root"); },
          .compute = broadcast});
  define({.name = "TriremeAllGather",
          .attrs = {"T: {half, bfloat16, float, double, int32, int64, uint8, bool}",
                    "label: string = ''"},
          .inputs = {"value: T"},
          .output = "result: T",
          .shapes = forget_shapes,
          .create = [](Construction* c) { return make_kernel(c, "all_gather", nullptr); },
          .compute = all_gather});
}

// When tf.load_op_library loads this library.
const bool kIsDefined = [] {
  Process& here = process();
  here.problem = load(here.api);
  if (!here.problem.empty()) return false;
  try {
    define_all();
  } catch (const std::exception& failure) {
    here.problem = failure.what();
  }
  return here.problem.empty();
}();

}  // namespace
}  // namespace trireme::tensorflow

extern "C" {

/// Why there are no operators; "" where there are.
__attribute__((visibility("default"))) const char* trireme_tensorflow_problem() {
  return trireme::tensorflow::process().problem.c_str();
}

/// Operators run on these groups from now on. All ranks call it. What went wrong; "" for nothing.
__attribute__((visibility("default"))) const char* trireme_tensorflow_attach(
    TriremeGroup* operations, TriremeGroup* descriptions, int64_t scratch_bytes) {
  using namespace trireme::tensorflow;
  static thread_local std::string text;
  try {
    auto made = std::make_shared<Collectives>(Groups{
        .operations = operations, .descriptions = descriptions, .scratch_bytes = scratch_bytes});
    const std::lock_guard lock(process().mutex);
    process().collectives = std::move(made);
    return "";
  } catch (const std::exception& failure) {
    text = failure.what();
    return text.c_str();
  }
}

/// Waits for the operations under way; then the groups may be freed.
__attribute__((visibility("default"))) void trireme_tensorflow_detach() {
  std::shared_ptr<trireme::tensorflow::Collectives> last;
  {
    const std::lock_guard lock(trireme::tensorflow::process().mutex);
    last = std::move(trireme::tensorflow::process().collectives);
  }
  if (last) last->close();
}
}
