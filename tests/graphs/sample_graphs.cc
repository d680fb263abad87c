#include "tests/graphs/sample_graphs.h"

#include <cmath>
#include <limits>
#include <random>

#include "tests/graphs/graph_builder.h"

namespace trireme::graph::testing {
namespace {

/// One argument of every kind and form.
ArgumentList all_arguments() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto wrapped = [](auto number) { return Argument{WrappedNumber{number, Dtype::kF32}}; };
  ArgumentList list = {{},
                       {true},
                       {Size{0, 5}},
                       {Size{0, std::numeric_limits<std::int64_t>::max()}},
                       {Size{4, -1}},
                       {Real{0, 0.5}},
                       {Real{0, 3}},
                       {Real{0, -0.0}},
                       {Real{0, kInf}},
                       {Real{0, -kInf}},
                       {Real{0.25, 0}},
                       {Real{0, 1.0 / 3}},
                       {std::complex<double>(0, -1.5)},
                       {std::complex<double>(kInf, 0)},
                       {std::string("sum")},
                       {Dtype::kBf16},
                       {DeviceName{"cpu"}},
                       {LayoutName{"strided"}},
                       {MemoryFormatName{"channels_last"}},
                       wrapped(true),
                       wrapped(Size{0, 4}),
                       wrapped(Size{1, 0}),
                       wrapped(Real{0, 0.125}),
                       wrapped(std::complex<double>(1, 2))};
  list.push_back({ArgumentList{}});
  list.push_back({ArgumentList{{Size{1, 0}}, {}, {ArgumentList{{Size{0, 8}}}}}});
  return list;
}

void add_buffers(GraphBuilder& b, ValueId x) {
  const ValueId mean = b.buffer("norm.running_mean", {8}, BufferPolicy::kBatchNorm);
  const ValueId count = b.buffer("norm.num_batches", {}, BufferPolicy::kCounter);
  const ValueId table = b.buffer("table", {8});
  const ValueId queue = b.buffer("queue", {4, 8}, BufferPolicy::kEager);
  b.graph().buffers[2].aliases = {"copy_of.table"};
  b.node("native_batch_norm", {x, mean}, GraphBuilder::batch({8}), {.writes = {mean}});
  b.write("add_", {count}, {.overload = "Scalar", .constants = {{Size{0, 1}}}});
  b.node("mul", {x, table}, GraphBuilder::batch({8}), {.overload = "Tensor"});
  b.write("copy_", {queue, table}, {.flags = {.grad_mode = false}});
}

/// A node with outputs [single, none, list of two].
void add_split(GraphBuilder& b, ValueId x) {
  const ValueId single = b.node("chunked", {x}, GraphBuilder::batch({8}));
  Graph& graph = b.graph();
  Node& node = graph.nodes.back();
  for (int i = 0; i < 2; ++i) {
    Value part = graph.values[single];
    part.storage_id = graph.values[x].storage_id;
    graph.values.push_back(part);
    node.outputs.push_back(static_cast<ValueId>(graph.values.size()) - 1);
  }
  node.outputs.insert(node.outputs.begin() + 1, -1);
  node.output_lists = {-1, -1, 2};
  node.flags.view = true;
}

}  // namespace

Graph make_mlp() {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId w1 = b.parameter("0.weight", {16, 8});
  const ValueId b1 = b.parameter("0.bias", {16});
  const ValueId w2 = b.parameter("2.weight", {4, 16});
  const ValueId b2 = b.parameter("2.bias", {4});
  ValueId h = b.node("linear", {x, w1, b1}, b.batch({16}), {.name = "0/linear"});
  h = b.node("relu", {h}, b.batch({16}), {.name = "relu"});
  h = b.node("linear", {h, w2, b2}, b.batch({4}), {.name = "2/linear"});
  b.loss(h);
  b.graph().torch_version = "2.15.0";
  return b.graph();
}

Graph make_rich_graph() {
  GraphBuilder b;
  const ValueId x = b.input("tokens", {8});
  const ValueId beta = b.step_scalar("beta");
  const ValueId embed = b.parameter("embed.weight", {32, 8});
  b.graph().parameters[0].aliases = {"head.weight"};
  const ValueId bias = b.parameter("bias", {8});
  const ValueId frozen = b.frozen("frozen", {8});
  b.parameter("unused", {3});
  const ValueId constant = b.constant({1, 2, 3});
  ValueId h = b.node("embedding", {embed, x}, b.batch({8}), {.name = "embed/embedding"});
  const NodeId position = b.last_node() + 1;
  ValueId p = b.node("add", {bias, frozen}, b.fixed({8}), {.overload = "Tensor"});
  h = b.node("add", {h, p}, b.batch({8}), {.overload = "Tensor"});
  p = b.node("add", {bias, frozen}, b.fixed({8}), {.name = "add/copy2", .overload = "Tensor"});
  b.graph().nodes.back().copy_of = position;
  h = b.node("add", {h, p}, b.batch({8}), {.overload = "Tensor"});
  add_buffers(b, h);
  add_split(b, h);
  b.node("everything", {h, constant, beta}, b.batch({8}), {.constants = all_arguments()});
  const ValueId flat = b.node("view", {h}, {{8, 0}}, {.view_of = h});
  b.write("relu_", {flat});
  h = b.node("dropout", {h}, b.batch({8}),
             {.constants = {{Real{0, 0.1}}, {true}}, .flags = {.random = true}});
  h = b.node("opaque", {h, embed}, b.batch({32}), {.name = "sampler", .overload = "sampler"});
  b.graph().nodes.back().autocast = Autocast{"cpu", Dtype::kBf16};
  const ValueId weight = b.node("sum", {x}, {}, {.flags = {.batch_dependent = true}});
  b.loss(h);
  b.graph().losses.back().weight = weight;
  b.graph().losses.back().coefficient = 0.5;
  b.loss(x, "accuracy");
  b.graph().losses.back().coefficient = 0;
  b.graph().torch_version = "2.15.0";
  return b.graph();
}

Graph make_random_graph(unsigned seed, int num_nodes) {
  std::mt19937 random(seed);
  const auto pick = [&random](int count) { return static_cast<int>(random() % count); };
  GraphBuilder b;
  std::vector<ValueId> values = {b.input("x", {4}), b.input("y", {4})};
  std::vector<ValueId> state;
  for (int i = 0; i < 4; ++i) state.push_back(b.parameter("p" + std::to_string(i), {4, 4}));
  state.push_back(b.frozen("frozen", {4}));
  state.push_back(b.buffer("read_only", {4}));
  state.push_back(b.buffer("statistics", {4}, BufferPolicy::kBatchNorm));
  state.push_back(b.constant({1, 2, 3, 4}));
  const ValueId written_buffer = state[6];
  values.push_back(b.node("start", {values[0], state[0]}, b.batch({4})));
  while (static_cast<int>(b.graph().nodes.size()) + 2 < num_nodes) {
    const ValueId a = values[pick(static_cast<int>(values.size()))];
    switch (pick(10)) {
      case 0:
        b.write("relu_", {a});
        break;
      case 1:
        values.push_back(b.node("view", {a}, b.batch({4}), {.view_of = a}));
        break;
      case 2:
        values.push_back(b.node("dropout", {a}, b.batch({4}), {.flags = {.random = true}}));
        break;
      case 3:
        b.write("add_", {written_buffer, a}, {.flags = {.grad_mode = false}});
        break;
      default: {
        std::vector<ValueId> inputs = {a, values[pick(static_cast<int>(values.size()))]};
        if (pick(2) == 0) inputs.push_back(state[pick(static_cast<int>(state.size()))]);
        values.push_back(b.node("add", inputs, b.batch({4})));
      }
    }
  }
  b.loss(b.node("add", {values.back(), state[0]}, b.batch({4})));
  return b.graph();
}

}  // namespace trireme::graph::testing
