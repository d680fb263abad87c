#include "trireme/plan/graph/graph_queries.h"

#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"

namespace trireme::graph {
namespace {

Value tensor(Dtype dtype, std::vector<Size> shape) {
  Value value;
  value.dtype = dtype;
  value.shape = std::move(shape);
  return value;
}

TEST(Bytes, DependOnTheBatch) {
  const Value value = tensor(Dtype::kF32, {{4, 0}, {0, 8}, {1, 1}});
  EXPECT_EQ(num_elements_at(value, 0), 0);
  EXPECT_EQ(num_elements_at(value, 1), 4 * 8 * 2);
  EXPECT_EQ(bytes_at(value, 3), 12 * 8 * 4 * 4);
  EXPECT_EQ(bytes_at(tensor(Dtype::kC128, {}), 7), 16);
  EXPECT_EQ(bytes_at(tensor(Dtype::kBool, {{0, 0}, {0, 5}}), 7), 0);
}

TEST(Bytes, RefusesWhatNoTensorHas) {
  EXPECT_THROW(num_elements_at(tensor(Dtype::kF32, {{1, -4}}), 3), Error);
  const std::int64_t big = std::int64_t{1} << 40;
  EXPECT_THROW(num_elements_at(tensor(Dtype::kF32, {{0, big}, {0, big}}), 1), Error);
  EXPECT_THROW(num_elements_at(tensor(Dtype::kF32, {{big, 0}}), big), Error);
  EXPECT_THROW(bytes_at(tensor(Dtype::kF64, {{0, big}, {0, 1 << 21}}), 1), Error);
}

/// A parameter p used by `uses` nodes in a row.
Graph make_chain(int uses) {
  testing::GraphBuilder b;
  ValueId h = b.input("x", {4});
  const ValueId p = b.parameter("p", {4});
  for (int i = 0; i < uses; ++i) h = b.node("mul", {h, p}, b.batch({4}));
  b.loss(h);
  return b.graph();
}

TEST(UseSites, UpToFourUsesAreASiteEachMoreAreOneSite) {
  EXPECT_TRUE(use_sites(make_chain(0)).empty());
  EXPECT_EQ(use_sites(make_chain(1)), (std::vector<UseSite>{{0, 0, {0}}}));
  EXPECT_EQ(use_sites(make_chain(4)),
            (std::vector<UseSite>{{0, 0, {0}}, {0, 1, {1}}, {0, 2, {2}}, {0, 3, {3}}}));
  EXPECT_EQ(use_sites(make_chain(5)), (std::vector<UseSite>{{0, 0, {0, 1, 2, 3, 4}}}));
}

TEST(UseSites, CountNodesWithGradientsOnly) {
  testing::GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId p = b.parameter("p", {4});
  const ValueId frozen = b.frozen("frozen", {4});
  b.node("mul", {x, p}, b.batch({4}), {.flags = {.grad_mode = false}});
  b.node("mul", {x, frozen}, b.batch({4}));
  b.node("mul", {p, p}, b.fixed({4}));
  b.node("stack", {x}, b.batch({4}),
         {.constants = {{ArgumentList{{ValueRef{p}}, {}, {ArgumentList{{ValueRef{p}}}}}}}});
  EXPECT_EQ(use_sites(b.graph()), (std::vector<UseSite>{{0, 0, {2}}, {0, 1, {3}}}));
}

// `head->weight = embedding->weight` leaves `head.weight` registered, saved and untrained.
TEST(UnusedParameters, AreThoseThatNoNodeTrains) {
  testing::GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId p = b.parameter("p", {4});
  b.parameter("head.weight", {4});
  b.frozen("frozen", {4});
  b.loss(b.node("mul", {x, p}, b.batch({4})));
  EXPECT_EQ(unused_parameters(b.graph()), std::vector<std::string>{"head.weight"});
}

TEST(UseSites, AreFoundByNode) {
  const Graph graph = testing::make_mlp();
  const std::vector<UseSite> sites = use_sites(graph);
  ASSERT_EQ(sites.size(), 4U);
  EXPECT_EQ(site_of(sites, 0, 0), 0);
  EXPECT_EQ(site_of(sites, 2, 3), 0);
  EXPECT_EQ(site_of(sites, 1, 0), std::nullopt);
  EXPECT_EQ(site_of(sites, 2, 0), std::nullopt);
  EXPECT_EQ(site_of(sites, 0, 99), std::nullopt);
  const std::vector<UseSite> many = use_sites(make_chain(6));
  EXPECT_EQ(site_of(many, 5, 0), 0);
  const std::vector<UseSite> few = use_sites(make_chain(3));
  EXPECT_EQ(site_of(few, 2, 0), 2);
}

}  // namespace
}  // namespace trireme::graph
