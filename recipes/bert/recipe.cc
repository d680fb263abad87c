#include "recipes/bert/recipe.h"

#include <torch/types.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "packs/text/data/pair_source.h"
#include "packs/text/data/prepare.h"
#include "recipes/bert/classification.h"
#include "recipes/bert/config.h"
#include "recipes/bert/examples.h"
#include "recipes/bert/model.h"
#include "recipes/options/recipe_of.h"
#include "recipes/options/text_options.h"
#include "trireme/base/environment.h"
#include "trireme/error.h"
#include "trireme/model.h"

namespace trireme::recipes::bert {
namespace {

constexpr std::int64_t kExamples = 3;
constexpr std::int64_t kCountedSamples = 2000;

/// What the command line says; numbers that it does not name are those of the size.
struct Options {
  std::string size = "mini";
  std::optional<std::int64_t> blocks, channels, inner, heads;
  double dropout = 0;
  bool is_unpadded = false;

  text::PrepareOptions text{.tokenizer = {.num_pieces = 8000, .sample_bytes = 4'000'000},
                            .held_out_fraction = 0.05,
                            .cache = ".cache/bert"};
  std::string passages = "paragraphs";
  text::PairOptions pairs;

  ClassifyOptions classify;
};

BertConfig config_of(const Options& options, std::int64_t vocabulary) {
  BertConfig config = make_config(options.size);
  config.vocabulary = vocabulary;
  config.blocks = options.blocks.value_or(config.blocks);
  config.channels = options.channels.value_or(config.channels);
  config.inner = options.inner.value_or(config.inner);
  config.heads = options.heads.value_or(config.heads);
  config.dropout = options.dropout;
  config.is_unpadded = options.is_unpadded;
  check(config);
  if (options.pairs.length > config.positions) {
    throw Error(ErrorKind::kInvalidArgument,
                "samples of " + std::to_string(options.pairs.length) +
                    " tokens are longer than the " + std::to_string(config.positions) +
                    " positions of the model; ask for shorter ones with --bert-length");
  }
  return config;
}

text::PreparedPassages prepare(const Options& options) {
  text::PrepareOptions prepare = options.text;
  const Logger logger(read_environment().log_level, "bert");
  std::string used;
  if (take_python_library("bert", prepare)) {
    used = "the text is the Python library in '" + prepare.inputs[0].string() +
           "' (--bert-text names another); ";
  }
  if (prepare.tokenizer_model.empty()) {
    used += "the vocabulary is made of the text (--bert-vocabulary names a vocab.txt)";
  } else {
    used += "the vocabulary is '" + prepare.tokenizer_model.string() + "'";
  }
  const bool is_whole = options.passages == "documents";
  auto prepared = text::prepare_passages(
      prepare, is_whole ? text::Passages::kDocuments : text::Passages::kParagraphs, logger);
  if (!prepared.was_cached) logger.info(used);  // else all processes would say it
  return prepared;
}

/// The samples of a split. kInvalidArgument, naming it and the `remedy`, where it has none.
std::shared_ptr<const text::PairSource> samples_of(const text::TokenShards& tokens,
                                                   const text::PairOptions& pairs,
                                                   const std::string& split,
                                                   const std::string& remedy) {
  try {
    return std::make_shared<text::PairSource>(tokens, pairs);
  } catch (const Error& error) {
    throw Error(error.kind(), "the " + split + " text: " + error.message() + "; " + remedy);
  }
}

Losses losses_of(Bert& net, const Batch& batch) {
  const auto made = net->losses(
      {.tokens_BS = batch["tokens"], .types_BS = batch["types"], .lengths_B = batch["length"]},
      {.positions_BP = batch["positions"],
       .hidden_BP = batch["hidden"],
       .counts_B = batch["predictions"],
       .is_random_B = batch["is_random"]});
  return {sum_loss(made.masked_sum, made.num_masked, "masked"), mean_loss(made.next_mean, "next"),
          metric(sum_loss(made.masked_correct, made.num_masked), "masked_accuracy"),
          metric(mean_loss(made.next_correct), "next_accuracy")};
}

Workload make_workload(const Options& options, const text::PreparedPassages& text) {
  // Drawn first, so that the samples are the same for every size of the model.
  const auto seed = torch::randint(std::numeric_limits<std::int64_t>::max(), {1}, torch::kLong);
  Bert net(config_of(options, text.pieces.vocabulary_size()));
  Model model =
      make_model(net.ptr(), [net](const Batch& batch) mutable { return losses_of(net, batch); });
  text::PairOptions pairs = options.pairs;
  pairs.special = text.pieces.special();
  pairs.masking.mask = pairs.special.mask;
  pairs.masking.vocabulary = text.pieces.vocabulary_size();
  pairs.seed = static_cast<std::uint64_t>(seed.item<std::int64_t>());
  const auto training = samples_of(text.training, pairs, "training", "it is named by --bert-text");
  const auto held_out =
      samples_of(text.held_out, pairs, "held-out", "hold out more with --bert-held-out");
  return {.model = std::move(model),
          .training = training,
          .evaluation = held_out,
          .examples = [net, held_out, pieces = text.pieces] {
            return show_predictions(net, *held_out, pieces, kExamples) +
                   show_statistics(*held_out, pieces, kCountedSamples);
          }};
}

/// Pre-training's where no file names one: so the same options make the same.
text::WordPieces vocabulary_of(const Options& options) {
  const auto& file = options.text.tokenizer_model;
  return file.empty() ? prepare(options).pieces : text::WordPieces::load(file);
}

/// What takes time, done once a process: a workload is made several times.
class Data {
 public:
  Workload make(const Options& options) {
    if (options.classify.training.empty()) {
      if (!text_) text_ = prepare(options);
      return make_workload(options, *text_);
    }
    if (!pairs_) {
      pairs_ = read_pairs<text::LabelledPairSource>(
          options.classify, "bert", vocabulary_of(options),
          text::LabelledPairOptions{.length = options.pairs.length});
    }
    return make_classification(config_of(options, pairs_->vocabulary.vocabulary_size()), *pairs_);
  }

 private:
  std::optional<text::PreparedPassages> text_;
  std::optional<ClassifiedSequences> pairs_;
};

void add_model_options(CLI::App& app, Options& options) {
  app.add_option("--bert-size", options.size, "Model size")
      ->check(CLI::IsMember(size_names()))
      ->capture_default_str();
  app.add_option("--bert-blocks", options.blocks, "Blocks of attention and feed-forward layer");
  app.add_option("--bert-channels", options.channels, "Channels");
  app.add_option("--bert-inner", options.inner, "Channels inside of the feed-forward layers");
  app.add_option("--bert-heads", options.heads, "Of the attention; they share the channels");
  app.add_option("--bert-dropout", options.dropout)->capture_default_str();
  app.add_flag("--bert-unpadded", options.is_unpadded,
               "Compute on tokens alone, not on padding: the same losses, faster");
}

void add_sample_options(CLI::App& app, Options& options) {
  recipes::add_text_options(app, "bert", options.text);
  app.add_option("--bert-vocabulary", options.text.tokenizer_model,
                 "A vocab.txt of BERT, instead of making one of the text");
  app.add_option("--bert-pieces", options.text.tokenizer.num_pieces,
                 "Pieces of the vocabulary that is made")
      ->capture_default_str();
  app.add_option("--bert-passages", options.passages,
                 "What samples stay within: paragraphs or documents")
      ->check(CLI::IsMember({"paragraphs", "documents"}))
      ->capture_default_str();
  app.add_option("--bert-length", options.pairs.length, "Tokens of a sample at most")
      ->capture_default_str();
  app.add_option("--bert-predictions", options.pairs.masking.max_predictions,
                 "Hidden tokens of a sample at most")
      ->capture_default_str();
}

}  // namespace

Recipe make_recipe() {
  const auto add_classify = [](CLI::App& app, Options& options) {
    recipes::add_classify_options(app, "bert", options.classify);
  };
  return recipe_of<Options, Data>({add_model_options, add_sample_options, add_classify});
}

}  // namespace trireme::recipes::bert
