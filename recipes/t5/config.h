#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::recipes::t5 {

/// Which of the two published families a model is of.
enum class Variant : std::uint8_t {
  kV10,  ///< ReLU; one matrix embeds tokens and makes logits.
  kV11,  ///< Gated GELU; logits have a matrix of their own.
};

/// Everything that the shape of a model depends on. The defaults are those of `small`, v1.0.
struct Config {
  Variant variant = Variant::kV10;
  std::int64_t vocabulary = 32128;
  std::int64_t d_model = 512;
  std::int64_t d_ff = 2048;
  std::int64_t d_kv = 64;  ///< Of a head; heads x d_kv need not be d_model.
  std::int64_t heads = 8;
  std::int64_t encoder_layers = 6;
  std::int64_t decoder_layers = 6;
  std::int64_t buckets = 32;        ///< Of relative positions; even, at least 4.
  std::int64_t max_distance = 128;  ///< From here on all positions share a bucket.
  double norm_epsilon = 1e-6;
  double dropout = 0;  ///< 0 in pre-training on data seen once.
  /// Token 0 of the inputs is not attended to; else there must be none. For callers whose inputs
  /// differ in length: the recipe's do not.
  bool masks_padding = false;

  bool operator==(const Config&) const = default;
};

/// `tiny` (tests), `demo` (minutes on two cores), `small`, `base`, `large`, `3b`, `11b` (v1.0),
/// `xl`, `xxl` (v1.1).
const std::vector<std::string>& size_names();

/// The published numbers of a size; `tiny` and `demo` are ours.
///
/// Errors   kInvalidArgument for an unknown name or one that the variant does not have.
/// Source   v1.0: Raffel et al., JMLR 21 (2020), sections 3.1.2 and 3.7; v1.1: Shazeer,
///          arXiv 2002.05202, and the configurations released with it.
Config make_config(const std::string& size, Variant variant);

/// kInvalidArgument, naming the number, where one makes no model.
void check(const Config& config);

/// Trainable numbers of the model, by arithmetic.
std::int64_t num_parameters(const Config& config);

}  // namespace trireme::recipes::t5
