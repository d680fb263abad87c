#include "recipes/bert/config.h"

#include <map>

#include "recipes/options/model_numbers.h"
#include "trireme/error.h"

namespace trireme::recipes::bert {
namespace {

/// The numbers that differ between sizes; a head has 64 channels, a feed-forward layer four times
/// those of the model.
struct Size {
  std::int64_t blocks;
  std::int64_t channels;
};

const std::map<std::string, Size>& sizes() {
  static const std::map<std::string, Size> kSizes = {{"tiny", {2, 128}},
                                                     {"mini", {4, 256}},
                                                     {"small", {4, 512}},
                                                     {"base", {12, 768}},
                                                     {"large", {24, 1024}}};
  return kSizes;
}

constexpr std::int64_t kMostBlocks = 4096;

}  // namespace

const std::vector<std::string>& size_names() {
  static const std::vector<std::string> kNames = {"tiny", "mini", "small", "base", "large"};
  return kNames;
}

BertConfig make_config(const std::string& size) {
  const auto found = sizes().find(size);
  if (found == sizes().end()) refuse_size_name(size, "of BERT", size_names());
  const auto [blocks, channels] = found->second;
  return {.channels = channels, .inner = 4 * channels, .heads = channels / 64, .blocks = blocks};
}

void check(const BertConfig& config) {
  require_size(config.vocabulary, "the vocabulary");
  require_size(config.positions, "the number of positions");
  require_size(config.types, "the number of token types");
  require_size(config.channels, "the number of channels");
  require_size(config.inner, "the number of inner channels");
  require_size(config.heads, "the number of heads");
  require_size(config.blocks, "the number of blocks", kMostBlocks);
  if (config.channels % config.heads != 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "the heads must share the channels evenly, got " + std::to_string(config.channels) +
                    " channels and " + std::to_string(config.heads) + " heads");
  }
  require_dropout(config.dropout);
}

std::int64_t num_parameters(const BertConfig& config) {
  const std::int64_t c = config.channels;
  const auto linear = [](std::int64_t inputs, std::int64_t outputs) {
    return (inputs + 1) * outputs;
  };
  const std::int64_t norm = 2 * c;
  const std::int64_t embeddings = (config.vocabulary + config.positions + config.types) * c + norm;
  const std::int64_t block = linear(c, 3 * c) + linear(c, c) + linear(c, config.inner) +
                             linear(config.inner, c) + 2 * norm;
  const std::int64_t masked_head = linear(c, c) + norm + config.vocabulary;  // its matrix is tied
  const std::int64_t next_head = linear(c, c) + linear(c, 2);
  return embeddings + config.blocks * block + masked_head + next_head;
}

}  // namespace trireme::recipes::bert
