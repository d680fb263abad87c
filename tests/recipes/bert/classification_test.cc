// Fine-tuning on pairs with labels: the model, its ranks, what an evaluation says.

#include "recipes/bert/classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "recipes/bert/classifier.h"
#include "recipes/bert/examples.h"
#include "recipes/bert/model.h"
#include "tests/base/test_folder.h"
#include "tests/recipes/bert/random_batch.h"
#include "tests/recipes/rank_bits.h"
#include "trireme/engine/train/construct_workload.h"

namespace trireme::recipes::bert {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kClassifySeed = 3;

/// Letters are tokens from 5 on; the numbers of a small model fit.
text::WordPieces letters() {
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char letter = 'a'; letter <= 'z'; ++letter) vocabulary += std::string(1, letter) + "\n";
  return text::WordPieces::from_vocabulary(vocabulary, "letters");
}

/// Tables of pairs.
class Classification : public test::TestFolder {
 protected:
  /// Two runs of letters; the label is whether they begin alike.
  fs::path table(const std::string& name, int count) const {
    std::ofstream file(folder / name);
    file << "premise\thypothesis\tlabel\n";
    for (int i = 0; i < count; ++i) {
      const char first = static_cast<char>('a' + i % 3),
                 second = static_cast<char>('a' + i / 2 % 3);
      file << first << std::string(i % 5, ' ') << " x y\t" << second << (i % 4 == 0 ? " z" : "")
           << '\t' << (first == second ? "same" : "other") << '\n';
    }
    return folder / name;
  }

  ClassifiedSequences data(int training, std::vector<fs::path> held_out = {},
                           std::vector<std::int64_t> padded = {}) const {
    return read_pairs<text::LabelledPairSource>(
        ClassifyOptions{.training = {table("train.tsv", training)},
                        .held_out = std::move(held_out),
                        .padded = std::move(padded)},
        "bert", letters(), text::LabelledPairOptions{.length = 10});
  }

  static BertConfig config(bool is_unpadded, double dropout = 0) {
    BertConfig config = small_config(is_unpadded);
    config.dropout = dropout;
    return config;
  }
};

TEST_F(Classification, TheEncoderHasTheNamesOfThePreTrainedOne) {
  std::map<std::string, std::vector<std::int64_t>> pre_trained;
  for (const auto& item : Bert(small_config(false))->named_parameters()) {
    pre_trained[item.key()] = item.value().sizes().vec();
  }
  std::vector<std::string> own;
  for (const auto& item : Classifier(small_config(false), 3)->named_parameters()) {
    const auto found = pre_trained.find(item.key());
    if (found == pre_trained.end()) {
      own.push_back(item.key());
    } else {
      EXPECT_EQ(found->second, item.value().sizes().vec()) << item.key();
      pre_trained.erase(found);
    }
  }
  EXPECT_THAT(own, ElementsAre("classifier.weight", "classifier.bias"));
  for (const auto& [name, sizes] : pre_trained) {
    EXPECT_THAT(name, testing::AnyOf(HasSubstr("next."), HasSubstr("transform"), "masked_bias"));
  }
}

TEST_F(Classification, OnTokensAloneTheLogitsAreThoseWithPadding) {
  torch::manual_seed(1);
  Classifier padded(small_config(false), 3);
  torch::manual_seed(1);
  Classifier unpadded(small_config(true), 3);
  const RandomBatch batch(6, 13, 1);
  const auto expected = padded->logits(batch.sequences);
  EXPECT_EQ(expected.sizes().vec(), (std::vector<std::int64_t>{6, 3}));
  EXPECT_LT((expected - unpadded->logits(batch.sequences)).abs().max().item<float>(), 1e-5F);
}

TEST_F(Classification, TheLossIsTheMeanCrossEntropyAndAccuracyThePartThatIsRight) {
  const ClassifiedSequences given = data(12);
  Workload workload = make_classification(config(true), given);
  const train::BatchReader reader(workload.training, workload.model);
  const Losses losses = workload.model.forward(reader.read({.begin = 0, .end = 12}));
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[0].name, "loss");
  EXPECT_NEAR(losses[0].value.item<double>(), std::log(2), 0.05) << "it knows nothing yet";
  EXPECT_EQ(losses[1].name, "accuracy");
  EXPECT_EQ(losses[1].coefficient, 0);
  const double right = 12 * losses[1].value.item<double>();
  EXPECT_NEAR(right, std::round(right), 1e-5);
}

TEST_F(Classification, AnEvaluationSaysTheAccuracyOfEachOfItsFiles) {
  const ClassifiedSequences given = data(12, {table("near.tsv", 9), table("far.tsv", 5)});
  Workload workload = make_classification(config(true), given);
  workload.model.set_training(false);
  const train::BatchReader reader(workload.evaluation, workload.model);
  const Losses losses = workload.model.forward(reader.read({.begin = 0, .end = 14}));
  ASSERT_EQ(losses.size(), 4U);
  EXPECT_EQ(losses[2].name, "near_accuracy");
  EXPECT_EQ(losses[3].name, "far_accuracy");
  EXPECT_EQ(losses[2].weight.item<double>(), 9);
  EXPECT_EQ(losses[3].weight.item<double>(), 5);
  const double right = (losses[2].value + losses[3].value).item<double>();
  EXPECT_NEAR(losses[1].value.item<double>(), right / 14, 1e-6);
  EXPECT_THAT(
      workload.examples(),
      testing::AllOf(HasSubstr("sample 0: same (the model: "), HasSubstr("| [CLS] a x y [SEP]"),
                     HasSubstr("near.tsv: of 9 pairs "), HasSubstr("far.tsv: of 5 pairs ")));
}

TEST_F(Classification, FilesOfOneNameAreToldApartByTheirPaths) {
  fs::create_directories(folder / "far");
  const ClassifiedSequences given = data(12, {table("dev.tsv", 9), table("far/dev.tsv", 5)});
  Workload workload = make_classification(config(false), given);
  workload.model.set_training(false);
  const train::BatchReader reader(workload.evaluation, workload.model);
  const Losses losses = workload.model.forward(reader.read({.begin = 0, .end = 14}));
  ASSERT_EQ(losses.size(), 4U);
  EXPECT_EQ(losses[2].name, (folder / "dev.tsv").string() + "_accuracy");
  EXPECT_EQ(losses[3].name, (folder / "far/dev.tsv").string() + "_accuracy");
}

TEST_F(Classification, HeldOutPairsHaveTheLabelsOfTheTrainingOnes) {
  std::ofstream(folder / "held_out.tsv") << "premise\thypothesis\tlabel\na\tb\tunlike\n";
  try {
    data(12, {folder / "held_out.tsv"});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(),
                testing::AllOf(HasSubstr("held_out.tsv' line 2"), HasSubstr("'other', 'same'"),
                               HasSubstr("'unlike'")));
  }
}

TEST_F(Classification, RanksHaveTheBitsOfTheSerialExecutor) {
  for (const bool is_unpadded : {false, true}) {
    const MakeWorkload make = [given = data(40), config = config(is_unpadded, 0.1)] {
      return make_classification(config, given);
    };
    expect_bits_of_serial_executor(make, kClassifySeed);
  }
}

TEST_F(Classification, RanksHaveTheBitsOfTheSerialExecutorAtSeveralLengths) {
  const ClassifiedSequences given = data(40, {}, {8, 9});
  for (const bool is_unpadded : {false, true}) {
    const MakeWorkload make = [given, config = config(is_unpadded, 0.1)] {
      return make_classification(config, given);
    };
    expect_bits_of_serial_executor(make, kClassifySeed);
  }
}

}  // namespace
}  // namespace trireme::recipes::bert
