#include "trireme/engine/program/split_backward.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <vector>

namespace trireme::program {
namespace {

class SumsBySite : public GradientSink {
 public:
  void accept(int site, const at::Tensor& gradient) override {
    gradients[site].push_back(gradient.clone());
  }
  std::map<int, std::vector<at::Tensor>> gradients;
};

/// A stage that sends three values: `chain` from what it received and parameter 0, `mixed` from both parameters, and
/// `own` from parameter 1 alone, which `mixed` is made of.
struct Shared {
  explicit Shared(SumsBySite& sink)
      : leaf(make_node<CaptureNode>()),
        x(make_stand_in(torch::full({2}, 3.0), leaf)),
        first(make_stand_in(torch::full({2}, 5.0), make_node<SiteNode>(sink, 0))),
        second(make_stand_in(torch::full({2}, 7.0), make_node<SiteNode>(sink, 1))) {
    const at::Tensor p = first * 2;
    own = second * 3;
    mixed = own * p;
    chain = x * p;
    for (const at::Tensor& sent : {chain, own, mixed}) {
      roots.push_back(torch::autograd::impl::gradient_edge(sent));
      gradients.push_back(torch::ones({2}));
    }
  }

  NodePtr leaf;
  at::Tensor x, first, second, own, mixed, chain;
  torch::autograd::edge_list roots;
  torch::autograd::variable_list gradients;
};

TEST(SplitBackward, ASiteOfSeveralValuesGetsOneSum) {
  SumsBySite whole, parts;
  const Shared one(whole);
  run_backward(one.roots, one.gradients);
  const Shared other(parts);
  WeightWork work;
  const auto received = run_input_backward(other.roots, other.gradients, {{other.leaf, 0}}, work);
  EXPECT_TRUE(parts.gradients.empty());
  run_weight_backward(std::move(work));
  EXPECT_TRUE(torch::equal(received.at(0), static_cast<CaptureNode*>(one.leaf.get())->take()));
  ASSERT_EQ(parts.gradients.size(), 2U);
  for (const auto& [site, gradients] : whole.gradients) {
    ASSERT_EQ(parts.gradients.at(site).size(), 1U) << "site " << site;
    EXPECT_TRUE(torch::equal(parts.gradients.at(site)[0], gradients.at(0))) << "site " << site;
  }
}

TEST(SplitBackward, AStageThatReceivesNothingLeavesAllToTheSecondPart) {
  SumsBySite sink;
  const Shared stage(sink);
  WeightWork work;
  EXPECT_TRUE(run_input_backward(stage.roots, stage.gradients, {}, work).empty());
  EXPECT_TRUE(sink.gradients.empty());
  run_weight_backward(std::move(work));
  EXPECT_EQ(sink.gradients.size(), 2U);
}

}  // namespace
}  // namespace trireme::program
