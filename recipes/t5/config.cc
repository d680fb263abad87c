#include "recipes/t5/config.h"

#include <map>
#include <utility>

#include "recipes/options/model_numbers.h"
#include "trireme/error.h"

namespace trireme::recipes::t5 {
namespace {

/// The numbers that differ between sizes.
struct Size {
  std::int64_t d_model;
  std::int64_t d_ff;
  std::int64_t d_kv;
  std::int64_t heads;
  std::int64_t layers;  ///< Of the encoder, and as many of the decoder.
};

const std::map<std::string, Size>& sizes_of(Variant variant) {
  static const std::map<std::string, Size> kV10Sizes = {
      {"tiny", {32, 64, 8, 4, 2}},          {"demo", {256, 1024, 64, 4, 3}},
      {"small", {512, 2048, 64, 8, 6}},     {"base", {768, 3072, 64, 12, 12}},
      {"large", {1024, 4096, 64, 16, 24}},  {"3b", {1024, 16384, 128, 32, 24}},
      {"11b", {1024, 65536, 128, 128, 24}},
  };
  static const std::map<std::string, Size> kV11Sizes = {
      {"tiny", {32, 64, 8, 4, 2}},         {"demo", {256, 768, 64, 4, 3}},
      {"small", {512, 1024, 64, 6, 8}},    {"base", {768, 2048, 64, 12, 12}},
      {"large", {1024, 2816, 64, 16, 24}}, {"xl", {2048, 5120, 64, 32, 24}},
      {"xxl", {4096, 10240, 64, 64, 24}},
  };
  return variant == Variant::kV10 ? kV10Sizes : kV11Sizes;
}

constexpr std::int64_t kMostLayers = 4096;

}  // namespace

const std::vector<std::string>& size_names() {
  static const std::vector<std::string> kNames = {"tiny", "demo", "small", "base", "large",
                                                  "3b",   "11b",  "xl",    "xxl"};
  return kNames;
}

Config make_config(const std::string& size, Variant variant) {
  const auto& sizes = sizes_of(variant);
  const auto found = sizes.find(size);
  if (found == sizes.end()) {
    std::vector<std::string> names = size_names();
    std::erase_if(names, [&](const std::string& name) { return !sizes.contains(name); });
    refuse_size_name(size, "in this variant of T5", names);
  }
  const Size& numbers = found->second;
  return {.variant = variant,
          .d_model = numbers.d_model,
          .d_ff = numbers.d_ff,
          .d_kv = numbers.d_kv,
          .heads = numbers.heads,
          .encoder_layers = numbers.layers,
          .decoder_layers = numbers.layers};
}

void check(const Config& config) {
  require_size(config.vocabulary, "the vocabulary");
  require_size(config.d_model, "d_model");
  require_size(config.d_ff, "d_ff");
  require_size(config.d_kv, "d_kv");
  require_size(config.heads, "the number of heads");
  require_size(config.encoder_layers, "the number of encoder layers", kMostLayers);
  require_size(config.decoder_layers, "the number of decoder layers", kMostLayers);
  if (config.buckets < 4 || config.buckets % 2 != 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "the number of position buckets must be even and at least 4, got " +
                    std::to_string(config.buckets));
  }
  if (config.max_distance <= config.buckets / 2) {
    throw Error(ErrorKind::kInvalidArgument,
                "max_distance must be more than half of the buckets, got " +
                    std::to_string(config.max_distance));
  }
  require_dropout(config.dropout);
}

std::int64_t num_parameters(const Config& config) {
  const std::int64_t d = config.d_model;
  const bool is_v11 = config.variant == Variant::kV11;
  const std::int64_t attention = 4 * d * config.heads * config.d_kv + d;  // with its norm
  const std::int64_t feed_forward = (is_v11 ? 3 : 2) * d * config.d_ff + d;
  const std::int64_t stack = config.buckets * config.heads + d;  // position bias, last norm
  const std::int64_t embeddings = (is_v11 ? 2 : 1) * config.vocabulary * d;
  return embeddings + 2 * stack + config.encoder_layers * (attention + feed_forward) +
         config.decoder_layers * (2 * attention + feed_forward);
}

}  // namespace trireme::recipes::t5
