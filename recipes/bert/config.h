#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::recipes::bert {

/// Everything that a model depends on. The defaults are those of `base`.
struct BertConfig {
  std::int64_t vocabulary = 30522;
  std::int64_t positions = 512;  ///< Tokens of a sequence, at most.
  std::int64_t types = 2;        ///< Segments that tokens may belong to.
  std::int64_t channels = 768;
  std::int64_t inner = 3072;  ///< Channels inside of the feed-forward layers.
  std::int64_t heads = 12;    ///< They share the channels.
  std::int64_t blocks = 12;
  double norm_epsilon = 1e-12;
  double dropout = 0;  ///< Of embeddings, outputs of layers and attention.
  /// Computes on tokens alone, not on padding: the same losses, faster where sequences are short.
  bool is_unpadded = false;

  bool operator==(const BertConfig&) const = default;
};

/// `tiny`, `mini`, `small`, `base`, `large`.
const std::vector<std::string>& size_names();

/// The published numbers of a size.
///
/// Errors   kInvalidArgument for an unknown name.
/// Source   base, large: Devlin et al., NAACL 2019, section 3; the others: Turc et al.,
///          arXiv 1908.08962, table 1.
BertConfig make_config(const std::string& size);

/// kInvalidArgument, naming the number, where one makes no model.
void check(const BertConfig& config);

/// Trainable numbers of the model with its two heads, by arithmetic.
std::int64_t num_parameters(const BertConfig& config);

}  // namespace trireme::recipes::bert
