#include "trireme/plan/graph/graph_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"

namespace trireme::graph {
namespace {

using ::testing::HasSubstr;

/// What `check` says about a sample graph after a change; empty where it accepts it.
std::string complaint(Graph graph, const std::function<void(Graph&)>& change) {
  change(graph);
  try {
    check(graph);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

/// The MLP: values 0 x, 1 w1, 2 b1, 3 w2, 4 b2, then the outputs 5, 6, 7 and the loss 8.
std::string mlp(const std::function<void(Graph&)>& change) {
  return complaint(testing::make_mlp(), change);
}

std::string rich(const std::function<void(Graph&)>& change) {
  return complaint(testing::make_rich_graph(), change);
}

TEST(Check, AcceptsTheSamples) {
  EXPECT_EQ(mlp([](Graph&) {}), "");
  EXPECT_EQ(rich([](Graph&) {}), "");
  for (unsigned seed = 0; seed < 50; ++seed) {
    EXPECT_NO_THROW(check(testing::make_random_graph(seed, 30))) << "seed " << seed;
  }
  Graph nothing;
  nothing.mode = Mode::kEval;
  EXPECT_NO_THROW(check(nothing));
}

TEST(Check, ValuesHaveOneSource) {
  EXPECT_THAT(mlp([](Graph& g) { g.values.push_back(g.values[1]); }),
              HasSubstr("value 9: it has no source"));
  EXPECT_THAT(mlp([](Graph& g) { g.parameters[1].value = 1; }), HasSubstr("another source"));
  EXPECT_THAT(mlp([](Graph& g) { g.parameters[0].value = 0; }),
              HasSubstr("should be a parameter, but says it is an input"));
  EXPECT_THAT(mlp([](Graph& g) { g.parameters[0].value = 99; }), HasSubstr("not among the 9"));
  EXPECT_THAT(mlp([](Graph& g) { g.parameters[0].value = -1; }), HasSubstr("not among the 9"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[5].producer = -1; }), HasSubstr("the producer -1"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[0].producer = 2; }), HasSubstr("the producer 2"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[5].producer = 2; }),
              HasSubstr("value 5: it has no source"));
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[1].outputs[0] = 5; }), HasSubstr("value 6: it has no"));
  EXPECT_THAT(mlp([](Graph& g) {
                g.nodes[3].outputs.push_back(6);
                g.nodes[3].output_lists.push_back(-1);
              }),
              HasSubstr("value 6 is neither produced here nor one of its inputs"));
}

TEST(Check, ShapesAreWellFormed) {
  EXPECT_THAT(mlp([](Graph& g) { g.values[5].strides.pop_back(); }),
              HasSubstr("value 5: its shape has 2 dimensions, its strides 1"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[5].shape[1] = {0, -1}; }), HasSubstr("negative"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[5].shape[1] = {-1, 8}; }), HasSubstr("negative"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[5].strides[0] = {kMaxExtent + 1, 0}; }),
              HasSubstr("stride is too large"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[5].storage_id = -1; }), HasSubstr("no storage_id"));
}

TEST(Check, NodesAreInOrder) {
  EXPECT_THAT(mlp([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }),
              HasSubstr("node 1 'relu' (aten::relu): inputs: value 5 is used before node 0"));
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[1].id = 0; }), HasSubstr("value"));
  EXPECT_THAT(mlp([](Graph& g) {
                g.nodes[1].id = 0;
                g.values[6].producer = 0;
              }),
              HasSubstr("its id is taken"));
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[1].inputs[0] = {ValueRef{77}}; }),
              HasSubstr("there is no value 77"));
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[1].op.clear(); }), HasSubstr("names no operator"));
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[1].op = "opaque"; }), HasSubstr("name of its callable"));
}

TEST(Check, OutputsAddUp) {
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[1].output_lists = {2}; }),
              HasSubstr("output_lists give 2 outputs, but there are 1"));
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[1].output_lists = {-2}; }), HasSubstr("negative"));
  EXPECT_THAT(mlp([](Graph& g) {
                g.nodes[2].outputs.push_back(6);
                g.nodes[2].output_lists.push_back(-1);
              }),
              ::testing::IsEmpty())
      << "an input may be handed on";
}

TEST(Check, WritesAreInputsAndSpareWhatMustStay) {
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[1].writes = {0}; }), HasSubstr("not among its inputs"));
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[0].writes = {1}; }),
              HasSubstr("changes parameter '0.weight' in place"));
  EXPECT_EQ(mlp([](Graph& g) { g.nodes[0].writes = {0}; }), "");
  testing::GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId table = b.buffer("table", {4});
  b.write("add_", {table, x});
  b.graph().mode = Mode::kEval;
  EXPECT_THAT(complaint(b.graph(), [](Graph&) {}),
              HasSubstr("buffer 'table', whose policy is read_only"));
  EXPECT_EQ(complaint(b.graph(), [](Graph& g) { g.buffers[0].policy = BufferPolicy::kEager; }), "");
}

// A run keeps parameters in flat memory, where offsets from the storage's start mean others.
TEST(Check, ParametersAreNotAddressedByAbsoluteOffsets) {
  const auto strided = [](const Argument& offset) {
    testing::GraphBuilder b;
    const ValueId w = b.parameter("w", {8});
    b.node("as_strided", {w}, b.fixed({4}),
           {.constants = {{ArgumentList{{Size{0, 4}}}}, {ArgumentList{{Size{0, 2}}}}, offset},
            .view_of = w});
    b.graph().mode = Mode::kEval;
    return complaint(b.graph(), [](Graph&) {});
  };
  EXPECT_EQ(strided({}), "");
  EXPECT_THAT(strided({Size{0, 0}}), HasSubstr("the parameter 'w' by an absolute offset"));
}

TEST(Check, ArgumentsAreBounded) {
  const auto nested = [](int depth) {
    Argument argument;
    for (int i = 0; i < depth; ++i) argument = {ArgumentList{argument}};
    return argument;
  };
  EXPECT_EQ(mlp([&](Graph& g) { g.nodes[1].inputs.push_back(nested(kMaxListDepth)); }), "");
  EXPECT_THAT(mlp([&](Graph& g) { g.nodes[1].inputs.push_back(nested(kMaxListDepth + 1)); }),
              HasSubstr("nested deeper than 16"));
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[1].inputs.push_back({Size{kMaxExtent + 1, 0}}); }),
              HasSubstr("batch-dependent integer is too large"));
}

TEST(Check, CopiesFollowTheirOriginal) {
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[0].copy_of = 2; }), HasSubstr("copy_of: 2"));
  EXPECT_THAT(mlp([](Graph& g) { g.nodes[1].copy_of = 0; }), HasSubstr("the same operator"));
  EXPECT_EQ(mlp([](Graph& g) { g.nodes[2].copy_of = 0; }), "");
}

TEST(Check, InputsGrowWithTheBatchInOneDimension) {
  EXPECT_THAT(mlp([](Graph& g) { g.inputs[0].batch_dim = 2; }), HasSubstr("not one of its 2"));
  EXPECT_THAT(mlp([](Graph& g) { g.inputs[0].batch_dim = -2; }), HasSubstr("not one of its 2"));
  EXPECT_THAT(mlp([](Graph& g) { g.inputs[0].batch_dim = 1; }),
              HasSubstr("dimension 0 should not grow with it"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[0].shape[0] = {0, 4}; }),
              HasSubstr("dimension 0 should be a multiple of the batch"));
  EXPECT_THAT(rich([](Graph& g) { g.values[1].shape = g.values[1].strides = {{0, 1}}; }),
              HasSubstr("a step scalar must be 0-dim"));
}

TEST(Check, NamesAreUnique) {
  EXPECT_THAT(mlp([](Graph& g) { g.parameters[1].name = "0.weight"; }),
              HasSubstr("the name '0.weight' is taken"));
  EXPECT_THAT(mlp([](Graph& g) { g.parameters[1].aliases = {"2.weight"}; }), HasSubstr("is taken"));
  EXPECT_THAT(rich([](Graph& g) { g.buffers[0].name = "bias"; }), HasSubstr("is taken"));
  EXPECT_THAT(mlp([](Graph& g) { g.inputs[0].name.clear(); }), HasSubstr("it has no name"));
  EXPECT_THAT(rich([](Graph& g) { g.losses[1].name = "loss"; }), HasSubstr("its name is taken"));
}

TEST(Check, ParametersAreFixedAndAlone) {
  EXPECT_THAT(mlp([](Graph& g) { g.values[1].shape[0] = {1, 0}; }),
              HasSubstr("parameter '0.weight': its shape must not depend on the batch"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[1].shape = {{0, kMaxExtent}, {0, 2}}; }),
              HasSubstr("more than"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[1].dtype = Dtype::kI64; }),
              HasSubstr("dtype i64 cannot have a gradient"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[3].storage_id = g.values[1].storage_id; }),
              HasSubstr("parameter '2.weight': it shares memory with parameter '0.weight'"));
}

TEST(Check, ConstantsHaveTheirBytes) {
  EXPECT_THAT(rich([](Graph& g) { g.constants[0].bytes.pop_back(); }),
              HasSubstr("expected 12 bytes of data, got 11"));
}

TEST(Check, LossesAreScalarsWithAGradient) {
  EXPECT_THAT(mlp([](Graph& g) { g.losses.clear(); }),
              HasSubstr("the model must return at least one"));
  EXPECT_THAT(mlp([](Graph& g) { g.losses[0].value = 7; }),
              HasSubstr("loss 'loss': value 7 must be 0-dim, but has 2 dimensions"));
  EXPECT_THAT(mlp([](Graph& g) { g.losses[0].value = 70; }), HasSubstr("there is no value 70"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[8].dtype = Dtype::kI64; }), HasSubstr("got i64"));
  EXPECT_THAT(mlp([](Graph& g) { g.values[8].requires_grad = false; }),
              HasSubstr("depends on no trainable parameter"));
  EXPECT_THAT(
      mlp([](Graph& g) { g.losses[0].coefficient = std::numeric_limits<double>::infinity(); }),
      HasSubstr("coefficient is not finite"));
}

TEST(Check, OutputsHaveARowASample) {
  const auto with = [](ValueId value, Mode mode = Mode::kEval, std::string name = "scores") {
    return mlp([&](Graph& g) {
      g.mode = mode;
      for (Value& v : g.values) v.requires_grad = false;
      for (Parameter& p : g.parameters) g.values[p.value].requires_grad = mode == Mode::kTrain;
      g.outputs = {{std::move(name), value}};
    });
  };
  EXPECT_EQ(with(0), "") << "a field of the batch";
  EXPECT_EQ(with(7), "") << "a node's";
  EXPECT_THAT(with(1), HasSubstr("output 'scores': expected one row a sample"));
  EXPECT_THAT(with(8), HasSubstr("along dimension 0 of value 8"));
  EXPECT_THAT(with(70), HasSubstr("there is no value 70"));
  EXPECT_THAT(with(7, Mode::kEval, ""), HasSubstr("it has no name"));
}

TEST(Check, WeightsDependOnTheBatchOnly) {
  const auto weight = [](const std::function<ValueId(testing::GraphBuilder&, ValueId)>& make) {
    testing::GraphBuilder b;
    const ValueId x = b.input("x", {4});
    const ValueId p = b.parameter("p", {4});
    const ValueId mask = b.node("ne", {x}, b.batch({4}));
    const ValueId count = make(b, mask);
    b.loss(b.node("mul", {x, p}, b.batch({4})));
    b.graph().losses[0].weight = b.node("sum", {count}, {});
    return complaint(b.graph(), [](Graph&) {});
  };
  EXPECT_EQ(weight([](auto&, ValueId mask) { return mask; }), "");
  EXPECT_THAT(weight([](auto&, ValueId) { return 1; }),
              HasSubstr("loss 'loss': weight: it depends on a parameter"));
  EXPECT_THAT(weight([](auto& b, ValueId mask) {
                return b.node("dropout", {mask}, b.batch({4}), {.flags = {.random = true}});
              }),
              HasSubstr("the random node"));
  // The mask's producer is innocent, but another node writes a parameter's values into it.
  EXPECT_THAT(weight([](auto& b, ValueId mask) { return b.write("mul_", {mask, 1}); }),
              HasSubstr("a parameter"));
  EXPECT_THAT(weight([](auto& b, ValueId mask) {
                const ValueId total = b.buffer("total", {}, BufferPolicy::kEager);
                b.write("add_", {total, mask});
                return b.node("add", {mask, total}, b.batch({4}));
              }),
              HasSubstr("writes to a buffer"));
}

}  // namespace
}  // namespace trireme::graph
