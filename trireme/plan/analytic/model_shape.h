#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::analytic {

enum class ModelFamily : std::uint8_t {
  kGpt,     ///< Decoder alone, masked attention.
  kBert,    ///< Encoder alone.
  kT5,      ///< Encoder and decoder.
  kResNet,  ///< Convolutions.
};

/// A convolution of a ResNet, on square images.
struct Convolution {
  std::int64_t in = 0, out = 0;
  std::int64_t kernel = 1;
  std::int64_t size = 1;  ///< Rows and columns of its output.
  int block = 0;          ///< Which residual block it is of; 0: the first convolution.
  bool operator==(const Convolution&) const = default;
};

/// What a model is made of, as far as its cost depends on it. A transformer has `layers` blocks of attention and
/// feed-forward (T5: and `decoder_layers` with attention to the encoder), all alike.
struct ModelShape {
  std::string name;
  ModelFamily family = ModelFamily::kGpt;
  std::int64_t layers = 0;
  std::int64_t decoder_layers = 0;  ///< T5 alone.
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< Fewer than heads: grouped queries.
  std::int64_t head_size = 0;
  std::int64_t ffn = 0;        ///< Width of the feed-forward.
  bool is_gated = false;       ///< Two products into it: SwiGLU, GEGLU.
  std::int64_t vocab = 0;      ///< Rows of the embedding that are trained, padding included.
  std::int64_t positions = 0;  ///< Learned ones; 0: none.
  bool is_tied = true;         ///< The head is the embedding.
  bool has_bias = true;        ///< Linear layers and norms have one.
  bool has_embedding_norm = false;
  bool has_dropout = true;
  std::int64_t experts = 1;         ///< Feed-forwards of a block; above 1: a mixture.
  std::int64_t active_experts = 1;  ///< That each token goes through.
  std::int64_t seq_len = 0;         ///< Usual samples: tokens; images: rows.
  std::int64_t decoder_seq_len = 0;
  std::vector<Convolution> convolutions;
  std::int64_t classes = 0;
  bool operator==(const ModelShape&) const = default;

  bool is_transformer() const { return family != ModelFamily::kResNet; }
  std::int64_t num_blocks() const;
};

/// kInvalidArgument, naming the field, where a size is not positive or heads do not fit.
void check(const ModelShape& shape);

/// Trained parameters of a block of the first kind (T5: of the encoder), of a decoder's block, and
/// of what is beside the blocks: embeddings, last norms, head.
std::int64_t block_parameters(const ModelShape& shape);
std::int64_t decoder_block_parameters(const ModelShape& shape);
std::int64_t outer_parameters(const ModelShape& shape);

/// All of them. Exact for the named models.
std::int64_t parameters(const ModelShape& shape);

/// FLOPs of forward and backward for one sample, without recomputation: three times the forward's products; attention
/// counted in full, as published tables do (arXiv 2104.04473, equation 3).
double model_flops(const ModelShape& shape, std::int64_t seq_len);

/// A GPT as Megatron has it: learned positions, biases, tied head, feed-forward four times as wide.
ModelShape gpt_shape(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                     std::int64_t vocab = 51200);

/// The named models: gpt3-175b, llama3-405b, bloom-176b, t5-3b, ...
const std::vector<ModelShape>& models();

/// One of them. kInvalidArgument, listing all, where there is no such one.
const ModelShape& model(std::string_view name);

/// The named model that a published table means by "Llama 3.1 405B", "MPT 7b", "GPT-3 175B"; null
/// where none is known.
const ModelShape* model_of_text(std::string_view text);

}  // namespace trireme::analytic
