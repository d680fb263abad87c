#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "trireme/engine/record/recording.h"
#include "trireme/error.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph_check.h"

// Models whose code differs with the batch size, recorded at one size.

namespace trireme::record {
namespace {

using LossOf = std::function<torch::Tensor(torch::nn::LinearImpl&, const torch::Tensor&)>;

Model model_of_size(const LossOf& loss) {
  torch::manual_seed(0);
  const auto linear = std::make_shared<torch::nn::LinearImpl>(3, 3);
  return make_model(linear,
                    [linear, loss](const Batch& batch) { return loss(*linear, batch["x"]); });
}

Batch three_columns(std::int64_t size, std::uint64_t seed) {
  Batch batch;
  batch.set("x", torch::randn({size, 3}, at::make_generator<at::CPUGeneratorImpl>(seed + 1)));
  return batch;
}

std::string refusal_of(const LossOf& loss, const RecordOptions& options) {
  try {
    record(model_of_size(loss), three_columns, options);
  } catch (const Error& error) {
    return error.message();
  }
  return "was recorded";
}

torch::Tensor loop_over_samples(torch::nn::LinearImpl& linear, const torch::Tensor& x) {
  std::vector<torch::Tensor> rows;
  for (std::int64_t i = 0; i < x.size(0); ++i) rows.push_back(torch::relu(x[i]));
  return linear.forward(torch::stack(rows)).mean();
}

TEST(Exact, ALoopOverSamplesIsNamedWithTheSizesOfTheRecordings) {
  const std::string message = refusal_of(loop_over_samples, {.sizes = BatchSizes::kAny});
  EXPECT_THAT(message, testing::HasSubstr("a loop over samples"));
  EXPECT_THAT(message, testing::HasSubstr("12 at batch 4, 16 at batch 6, 24 at batch 10"));
  EXPECT_THAT(message, testing::HasSubstr("--record-at exact"));
}

/// It was `input/output`, and advised --record-at exact to who had given it.
TEST(Exact, AFailureOfTorchIsOneOfTheModel) {
  const auto misshapen = [](torch::nn::LinearImpl& linear, const torch::Tensor& x) {
    return linear.forward(x.t()).mean();
  };
  const auto on_card = [](torch::nn::LinearImpl& linear, const torch::Tensor& x) {
    return linear.forward(x.to(torch::kCUDA)).mean();
  };
  const auto failure = [](const LossOf& loss, BatchSizes sizes) {
    try {
      record(model_of_size(loss), three_columns, {.microbatch = 5, .sizes = sizes});
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorKind::kIo, "was recorded");
  };
  const Error exact = failure(misshapen, BatchSizes::kExact);
  EXPECT_EQ(exact.kind(), ErrorKind::kModelFailure);
  EXPECT_THAT(exact.message(), testing::HasSubstr("on a batch of 5 samples"));
  EXPECT_THAT(exact.message(), testing::Not(testing::HasSubstr("--record-at")));
  const Error any = failure(misshapen, BatchSizes::kAny);
  EXPECT_EQ(any.kind(), ErrorKind::kModelFailure);
  EXPECT_THAT(any.message(), testing::HasSubstr("--record-at exact"));
  if (torch::cuda::is_available()) return;
  const Error card = failure(on_card, BatchSizes::kAny);
  EXPECT_EQ(card.kind(), ErrorKind::kUnavailable);
  EXPECT_THAT(card.message(), testing::HasSubstr("keep model and data on the CPU"));
}

TEST(Exact, IsChosenWhereTheSizeAloneMakesTheDifference) {
  const Recording recording =
      record(model_of_size(loop_over_samples), three_columns, {.microbatch = 5});
  EXPECT_EQ(recording.graph.microbatch, 5);
  EXPECT_THAT(recording.why_exact, testing::HasSubstr("a loop over samples"));
  EXPECT_NO_THROW(graph::check_samples(recording.graph, 5));
  EXPECT_THROW(graph::check_samples(recording.graph, 4), Error);
}

TEST(Exact, IsNotChosenWhereAnySizeWillDo) {
  const auto mean = [](torch::nn::LinearImpl& linear, const torch::Tensor& x) {
    return linear.forward(x).mean();
  };
  EXPECT_EQ(record(model_of_size(mean), three_columns, {.microbatch = 5}).graph.microbatch, 0);
  const Recording asked =
      record(model_of_size(mean), three_columns, {.microbatch = 5, .sizes = BatchSizes::kExact});
  EXPECT_EQ(asked.graph.microbatch, 5);
  EXPECT_EQ(asked.why_exact, "");
}

TEST(Exact, IsNotChosenForWhatDependsOnTheStateOfTheProgram) {
  const auto calls = std::make_shared<int>(0);
  const auto changes = [calls](torch::nn::LinearImpl& linear, const torch::Tensor& x) {
    return linear.forward(x).sum() * (1.0 / ++*calls);
  };
  EXPECT_THAT(refusal_of(changes, {.microbatch = 5}),
              testing::HasSubstr("differs between recordings"));
  EXPECT_THAT(refusal_of(changes, {.microbatch = 5, .sizes = BatchSizes::kExact}),
              testing::HasSubstr("two recordings at the batch size 5 differ"));
}

TEST(Exact, AFixedBatchIsNamedWithOperatorParameterAndSize) {
  const auto fixed = [](torch::nn::LinearImpl& linear, const torch::Tensor& x) {
    return linear.forward(x).view({2, 3}).mean();
  };
  const std::string message = refusal_of(fixed, {.sizes = BatchSizes::kAny});
  EXPECT_THAT(message, testing::HasSubstr("aten::view"));
  EXPECT_THAT(message, testing::HasSubstr("near parameter 'bias'"));
  EXPECT_THAT(message, testing::HasSubstr("4, 6 and 10 samples"));
  EXPECT_EQ(record(model_of_size(fixed), three_columns, {.microbatch = 2}).graph.microbatch, 2);
}

TEST(Exact, NeedsToKnowTheSize) {
  EXPECT_THAT(refusal_of(loop_over_samples, {.sizes = BatchSizes::kExact}),
              testing::HasSubstr("--microbatch"));
}

}  // namespace
}  // namespace trireme::record
