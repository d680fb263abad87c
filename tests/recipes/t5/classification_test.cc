// Fine-tuning, a text in and the label's text out.

#include "recipes/t5/classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>

#include "tests/base/test_folder.h"
#include "tests/recipes/rank_bits.h"
#include "trireme/engine/train/construct_workload.h"

namespace trireme::recipes::t5 {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::uint64_t kPairSeed = 3;

class PairClassification : public test::TestFolder {
 protected:
  fs::path table(const std::string& name, int count) const {
    std::ofstream file(folder / name);
    file << "premise\thypothesis\tlabel\n";
    for (int i = 0; i < count; ++i) {
      file << "the cat" << std::string(i % 3, '!') << "\tthe " << (i % 2 == 0 ? "cat" : "mat")
           << '\t' << (i % 2 == 0 ? "same" : "another") << '\n';
    }
    return folder / name;
  }

  ClassifiedTexts data(int training, std::vector<fs::path> held_out = {},
                       std::vector<std::int64_t> padded = {}, bool has_lengths = false) const {
    static const text::Tokenizer kTokenizer = text::Tokenizer::train(
        std::vector<std::string>{"premise: the cat hypothesis: the mat same another"},
        {.num_pieces = 300});
    return read_pairs<text::PairToTextSource>(
        ClassifyOptions{.training = {table("train.tsv", training)},
                        .held_out = std::move(held_out),
                        .padded = std::move(padded)},
        "t5", kTokenizer, text::PairToTextOptions{.inputs = 48, .has_lengths = has_lengths});
  }

  static Config config(const ClassifiedTexts& data) {
    Config config = make_config("tiny", Variant::kV10);
    config.vocabulary = data.vocabulary.vocabulary_size();
    return config;
  }
};

TEST_F(PairClassification, AccuracyIsThePartThatGreedyDecodingWritesRight) {
  const ClassifiedTexts given = data(8, {table("near.tsv", 5), table("far.tsv", 3)});
  torch::manual_seed(1);
  Workload workload = make_classification(config(given), given);
  workload.model.set_training(false);
  const train::BatchReader reader(workload.evaluation, workload.model);
  const Losses losses = workload.model.forward(reader.read({.begin = 0, .end = 8}));
  ASSERT_EQ(losses.size(), 4U);
  EXPECT_EQ(losses[1].name, "accuracy");
  EXPECT_EQ(losses[1].value.item<double>(), 0) << "it knows nothing yet";
  EXPECT_EQ(losses[2].name, "near_accuracy");
  EXPECT_EQ(losses[3].weight.item<double>(), 3);
  std::size_t num_targets = 0;
  for (std::int64_t i = 0; i < 8; ++i) {
    num_targets += given.held_out->targets()[given.held_out->pair(i).label].size();
  }
  EXPECT_EQ(losses[0].weight.item<double>(), static_cast<double>(num_targets)) << "no padding";
  EXPECT_THAT(workload.examples(),
              testing::AllOf(HasSubstr("sample 0: same (the model: "),
                             HasSubstr("\n  | premise: the cat hypothesis: the cat\n"),
                             HasSubstr("near.tsv: of 5 pairs 60.00 % are 'same'")));
}

// Padding of the inputs is not attended to: a sample has the loss that it has in shorter inputs.
TEST_F(PairClassification, PaddingChangesNoLoss) {
  const ClassifiedTexts given = data(4);
  torch::manual_seed(1);
  Workload workload = make_classification(config(given), given);
  const train::BatchReader reader(workload.training, workload.model);
  const Batch batch = reader.read({.begin = 0, .end = 1});
  Batch shorter;
  const auto length = static_cast<std::int64_t>(given.training->pair(0).tokens.size());
  for (const auto& [name, tensor] : batch.tensors()) {
    shorter.set(name, name == "inputs" ? tensor.slice(1, 0, length) : tensor);
  }
  const double padded = workload.model.forward(batch)[0].value.item<double>();
  EXPECT_NEAR(padded, workload.model.forward(shorter)[0].value.item<double>(), 1e-4 * padded);
}

data::PackOptions rows_of_several() { return {.row = {{"inputs", 96}}, .max_segments = 4}; }

/// Losses and accuracies of all samples are those that they have alone.
TEST_F(PairClassification, RowsOfSeveralSamplesHaveTheirLosses) {
  const std::vector<fs::path> held_out = {table("near.tsv", 5), table("far.tsv", 6)};
  const auto losses = [&](bool has_rows) {
    const ClassifiedTexts given = data(8, held_out, {}, has_rows);
    torch::manual_seed(1);
    Workload workload = make_classification(
        config(given), given, has_rows ? std::optional(rows_of_several()) : std::nullopt);
    workload.model.set_training(false);
    const std::int64_t count = workload.evaluation->num_samples();
    EXPECT_EQ(count < 11, has_rows);
    const train::BatchReader reader(workload.evaluation, workload.model);
    const Batch batch = reader.read({.begin = 0, .end = count});
    return workload.model.forward(batch);
  };
  const Losses alone = losses(false), packed = losses(true);
  ASSERT_EQ(packed.size(), alone.size());
  EXPECT_EQ(packed[0].weight.item<double>(), alone[0].weight.item<double>());
  EXPECT_NEAR(packed[0].value.item<double>(), alone[0].value.item<double>(),
              1e-5 * alone[0].value.item<double>());
  for (std::size_t i = 1; i < alone.size(); ++i) {
    EXPECT_EQ(packed[i].name, alone[i].name);
    EXPECT_EQ(packed[i].value.item<double>() / (i == 1 ? 11 : 1), alone[i].value.item<double>());
  }
  EXPECT_EQ(packed[1].weight.item<double>(), 11);
  EXPECT_EQ(packed[3].weight.item<double>(), 6);
}

TEST_F(PairClassification, RanksHaveTheBitsOfRowsToo) {
  const MakeWorkload make = [given = data(60, {}, {}, /*has_lengths=*/true)] {
    return make_classification(config(given), given, rows_of_several());
  };
  expect_bits_of_serial_executor(make, kPairSeed);
}

TEST_F(PairClassification, RanksHaveTheBitsOfTheSerialExecutor) {
  std::vector<std::int64_t> lengths;  // of the first three: an exclamation mark more each
  const ClassifiedTexts texts = data(3);
  for (int i = 0; i < 3; ++i) lengths.push_back(std::ssize(texts.training->pair(i).tokens));
  ASSERT_LT(lengths[0], lengths[2]);
  for (const auto& padded : {std::vector<std::int64_t>(), {lengths[0], lengths[2]}}) {
    const MakeWorkload make = [given = data(40, {}, padded)] {
      return make_classification(config(given), given);
    };
    expect_bits_of_serial_executor(make, kPairSeed);
  }
}

}  // namespace
}  // namespace trireme::recipes::t5
