#include "recipes/t5/recipe.h"

#include <torch/types.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "packs/text/data/denoising_source.h"
#include "packs/text/data/prepare.h"
#include "packs/text/data/token_index.h"
#include "recipes/options/recipe_of.h"
#include "recipes/options/text_options.h"
#include "recipes/t5/classification.h"
#include "recipes/t5/config.h"
#include "recipes/t5/examples.h"
#include "recipes/t5/model.h"
#include "recipes/t5/show_tokens.h"
#include "trireme/base/environment.h"
#include "trireme/error.h"
#include "trireme/model.h"

namespace trireme::recipes::t5 {
namespace {

constexpr std::int64_t kExamples = 4;

/// What the command line says; numbers that it does not name are those of the size.
struct Options {
  std::string size = "demo";
  std::string variant = "1.0";
  std::optional<std::int64_t> layers, decoder_layers, d_model, d_ff, heads, d_kv;
  double dropout = 0;

  text::PrepareOptions text{.held_out_fraction = 0.02, .cache = ".cache/t5"};
  std::optional<std::int32_t> pieces;
  std::optional<std::int64_t> inputs;

  ClassifyOptions classify;
  std::int64_t row = 0, row_samples = 16;
};

/// How text goes to a model of a size, unless told otherwise.
struct TextSize {
  std::int32_t pieces;        ///< Of the tokenizer.
  std::int64_t sample_bytes;  ///< That it is trained on.
  std::int64_t inputs;        ///< Tokens of a sample's inputs at most.
};

TextSize text_size(const std::string& size) {
  const bool is_ours = size == "tiny" || size == "demo";
  return is_ours ? TextSize{4000, 2'000'000, 128} : TextSize{32000, 8'000'000, 512};
}

Config config_of(const Options& options, std::int64_t vocabulary) {
  Config config =
      make_config(options.size, options.variant == "1.1" ? Variant::kV11 : Variant::kV10);
  // Padded as the published models are, 32,100 tokens to 32,128: rows of the matrix stay aligned.
  config.vocabulary = (vocabulary + 127) / 128 * 128;
  config.encoder_layers = options.layers.value_or(config.encoder_layers);
  config.decoder_layers =
      options.decoder_layers.value_or(options.layers.value_or(config.decoder_layers));
  config.d_model = options.d_model.value_or(config.d_model);
  config.d_ff = options.d_ff.value_or(config.d_ff);
  config.heads = options.heads.value_or(config.heads);
  config.d_kv = options.d_kv.value_or(config.d_kv);
  config.dropout = options.dropout;
  check(config);
  return config;
}

text::Prepared prepare(const Options& options) {
  text::PrepareOptions prepare = options.text;
  const TextSize size = text_size(options.size);
  prepare.tokenizer.num_pieces = options.pieces.value_or(size.pieces);
  prepare.tokenizer.sample_bytes = size.sample_bytes;
  take_python_library("t5", prepare);
  return text::prepare(prepare, Logger(read_environment().log_level, "t5"));
}

/// The samples of a split. kInvalidArgument, naming it and the `remedy`, where it has none.
std::shared_ptr<const text::DenoisingSource> samples_of(const text::TokenShards& tokens,
                                                        const text::DenoisingOptions& denoising,
                                                        const std::string& split,
                                                        const std::string& remedy) {
  const auto lengths = data::longest_span_lengths(denoising.inputs, denoising.spans);
  if (tokens.num_tokens() < lengths.tokens) {
    throw Error(ErrorKind::kInvalidArgument,
                "the " + split + " text has " + std::to_string(tokens.num_tokens()) +
                    " tokens, and a sample takes " + std::to_string(lengths.tokens) + "; " +
                    remedy + ", or ask for shorter inputs with --t5-inputs");
  }
  return std::make_shared<text::DenoisingSource>(tokens, denoising);
}

std::int64_t inputs_of(const Options& options) {
  return options.inputs.value_or(text_size(options.size).inputs);
}

void require_padding(const text::Tokenizer& tokenizer) {
  if (tokenizer.padding() == kPad) return;
  throw Error(ErrorKind::kInvalidArgument, "the tokenizer's padding is token " +
                                               std::to_string(tokenizer.padding()) +
                                               "; T5 needs token 0");
}

Workload make_workload(const Options& options, const text::Prepared& text) {
  require_padding(text.tokenizer);
  // Drawn first, so that the spans are the same for every size of the model.
  const auto seed = torch::randint(std::numeric_limits<std::int64_t>::max(), {1}, torch::kLong);
  T5 net(config_of(options, text.tokenizer.vocabulary_size()));
  Model model = make_model(net.ptr(), [net](const Batch& batch) mutable {
    const TargetLoss loss = net->loss(batch["inputs"], batch["targets"]);
    return sum_loss(loss.sum, loss.weight);
  });
  const text::DenoisingOptions denoising{
      .inputs = inputs_of(options),
      .special = text.tokenizer.special(),
      .seed = static_cast<std::uint64_t>(seed.item<std::int64_t>())};
  const auto training =
      samples_of(text.training, denoising, "training", "name more of it with --t5-text");
  const auto held_out =
      samples_of(text.held_out, denoising, "held-out", "hold out more with --t5-held-out");
  return {.model = std::move(model),
          .training = training,
          .evaluation = held_out,
          .examples = [net, held_out, tokenizer = text.tokenizer] {
            return show_completions(net, *held_out, tokenizer, kExamples);
          }};
}

/// Pre-training's where no file names one: so the same options make the same.
text::Tokenizer tokenizer_of(const Options& options) {
  const auto& file = options.text.tokenizer_model;
  return file.empty() ? prepare(options).tokenizer : text::Tokenizer::load(file);
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
      pairs_ = read_pairs<text::PairToTextSource>(
          options.classify, "t5", tokenizer_of(options),
          text::PairToTextOptions{.inputs = inputs_of(options), .has_lengths = options.row > 0});
      require_padding(pairs_->vocabulary);
    }
    std::optional<data::PackOptions> rows;
    if (options.row > 0) {
      rows = {.row = {{"inputs", options.row}}, .max_segments = options.row_samples};
    }
    return make_classification(config_of(options, pairs_->vocabulary.vocabulary_size()), *pairs_,
                               rows);
  }

 private:
  std::optional<text::Prepared> text_;
  std::optional<ClassifiedTexts> pairs_;
};

void add_model_options(CLI::App& app, Options& options) {
  app.add_option("--t5-size", options.size, "Model size")
      ->check(CLI::IsMember(size_names()))
      ->capture_default_str();
  app.add_option("--t5-variant", options.variant, "1.0: ReLU, tied; 1.1: gated GELU, untied")
      ->check(CLI::IsMember({"1.0", "1.1"}))
      ->capture_default_str();
  app.add_option("--t5-layers", options.layers, "Of the encoder, and of the decoder");
  app.add_option("--t5-decoder-layers", options.decoder_layers, "Of the decoder, if others");
  app.add_option("--t5-d-model", options.d_model, "Channels");
  app.add_option("--t5-d-ff", options.d_ff, "Channels inside of the feed-forward layers");
  app.add_option("--t5-heads", options.heads, "Of the attention");
  app.add_option("--t5-d-kv", options.d_kv, "Channels of a head");
  app.add_option("--t5-dropout", options.dropout)->capture_default_str();
}

void add_row_options(CLI::App& app, Options& options) {
  auto* row = app.add_option("--t5-classify-row", options.row,
                             "Tokens of inputs of a row in which samples stand behind each other: "
                             "little is padding; else each sample stands alone")
                  ->check(CLI::PositiveNumber)
                  ->needs("--t5-classify")
                  ->excludes("--t5-classify-padded");
  app.add_option("--t5-classify-row-samples", options.row_samples, "Samples of a row at most")
      ->check(CLI::PositiveNumber)
      ->needs(row)
      ->capture_default_str();
}

void add_sample_options(CLI::App& app, Options& options) {
  recipes::add_text_options(app, "t5", options.text);
  app.add_option("--t5-vocabulary", options.pieces,
                 "Pieces of the tokenizer; else 32000, of tiny and demo 4000");
  app.add_option("--t5-tokenizer", options.text.tokenizer_model,
                 "A SentencePiece model, instead of training one");
  app.add_option("--t5-inputs", options.inputs,
                 "Tokens of a sample's inputs at most; else 512, of tiny and demo 128");
}

}  // namespace

Recipe make_recipe() {
  const auto add_classify = [](CLI::App& app, Options& options) {
    recipes::add_classify_options(app, "t5", options.classify);
  };
  return recipe_of<Options, Data>(
      {add_model_options, add_sample_options, add_classify, add_row_options},
      {{std::string(text::kTokensDocument.format), show_tokens}});
}

}  // namespace trireme::recipes::t5
