#include <algorithm>
#include <array>
#include <cctype>

#include "trireme/error.h"
#include "trireme/plan/analytic/model_shape.h"

// Shapes: GPT of 2021 arXiv 2104.04473 table 1; GPT-3 arXiv 2005.14165; MT-NLG arXiv 2201.11990; BLOOM arXiv 2211.05100; Llama
// arXiv 2302.13971, Llama 2 arXiv 2307.09288; Llama 3 arXiv 2407.21783; T5 arXiv 1910.10683; BERT arXiv 1810.04805; Mixtral arXiv 2401.04088; ResNet arXiv 1512.03385; MPT
// mosaicml/llm-foundry scripts/train/yamls; Nemotron and NeMo's T5, BERT, GPT NVIDIA/NeMo-Megatron-Launcher
// launcher_scripts/conf/training.

namespace trireme::analytic {
namespace {

ModelShape gpt(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return gpt_shape(name, layers, hidden, heads);
}

/// Learned positions of 2048, a vocabulary of 50368, biases, fused attention without dropout.
ModelShape mpt(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  ModelShape shape = gpt_shape(name, layers, hidden, heads, 50368);
  shape.has_dropout = false;
  return shape;
}

struct LlamaSize {
  std::int64_t layers, hidden, heads, kv_heads, ffn, vocab, seq_len;
};

ModelShape llama(const char* name, const LlamaSize& size) {
  ModelShape shape = gpt_shape(name, size.layers, size.hidden, size.heads, size.vocab);
  shape.kv_heads = size.kv_heads;
  shape.ffn = size.ffn;
  shape.is_gated = true;
  shape.positions = 0;
  shape.is_tied = false;
  shape.has_bias = false;
  shape.has_dropout = false;
  shape.seq_len = size.seq_len;
  return shape;
}

/// Squared ReLU without a gate.
ModelShape nemotron(const char* name, const LlamaSize& size) {
  ModelShape shape = llama(name, size);
  shape.is_gated = false;
  return shape;
}

ModelShape mixtral(const char* name, const LlamaSize& size) {
  ModelShape shape = llama(name, size);
  shape.experts = 8;
  shape.active_experts = 2;
  return shape;
}

ModelShape bloom() {
  ModelShape shape = gpt_shape("bloom-176b", 70, 14336, 112, 250880);
  shape.positions = 0;
  shape.has_embedding_norm = true;
  return shape;
}

ModelShape bert(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                std::int64_t vocab) {
  ModelShape shape = gpt_shape(name, layers, hidden, heads, vocab);
  shape.family = ModelFamily::kBert;
  shape.positions = 512;
  shape.seq_len = 512;
  return shape;
}

struct T5Size {
  std::int64_t layers, hidden, heads, head_size, ffn, vocab;
  bool is_gated;
};

ModelShape t5(const char* name, const T5Size& size) {
  ModelShape shape = gpt_shape(name, size.layers, size.hidden, size.heads, size.vocab);
  shape.family = ModelFamily::kT5;
  shape.decoder_layers = size.layers;
  shape.head_size = size.head_size;
  shape.ffn = size.ffn;
  shape.is_gated = size.is_gated;
  shape.positions = 0;
  shape.has_bias = false;
  shape.seq_len = 512;
  shape.decoder_seq_len = 128;
  return shape;
}

/// Bottleneck blocks, version 1.5: the middle convolution has the stride.
ModelShape resnet(const char* name, const std::array<int, 4>& blocks) {
  ModelShape shape;
  shape.name = name;
  shape.family = ModelFamily::kResNet;
  shape.classes = 1000;
  shape.seq_len = 224;
  shape.convolutions.push_back({3, 64, 7, 112, 0});
  std::int64_t in = 64;
  int block = 1;
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    const std::int64_t size = std::int64_t{56} >> stage;
    for (int i = 0; i < blocks[stage]; ++i, ++block) {
      const std::int64_t before = i == 0 && stage > 0 ? 2 * size : size;
      shape.convolutions.push_back({in, width, 1, before, block});
      shape.convolutions.push_back({width, width, 3, size, block});
      if (i == 0) shape.convolutions.push_back({in, 4 * width, 1, size, block});
      shape.convolutions.push_back({width, 4 * width, 1, size, block});
      in = 4 * width;
    }
  }
  return shape;
}

void add_gpts(std::vector<ModelShape>& all) {
  for (const ModelShape& shape :
       {gpt("gpt-1.7b", 24, 2304, 24), gpt("gpt-3.6b", 30, 3072, 32), gpt("gpt-7.5b", 36, 4096, 32),
        gpt("gpt-18b", 40, 6144, 48), gpt("gpt-39b", 48, 8192, 64), gpt("gpt-76b", 60, 10240, 80),
        gpt("gpt-145b", 80, 12288, 96), gpt("gpt-310b", 96, 16384, 128),
        gpt("gpt-530b", 105, 20480, 128), gpt("gpt-1t", 128, 25600, 160),
        gpt("gpt2-1.5b", 48, 1600, 25), gpt("gpt-1.3b", 24, 2048, 16), gpt("gpt-22b", 48, 6144, 64),
        gpt("gpt3-5b", 24, 4096, 32), gpt("gpt3-13b", 40, 5120, 40), gpt("gpt3-20b", 44, 6144, 48),
        gpt("gpt3-40b", 48, 8192, 64), gpt("gpt3-175b", 96, 12288, 96),
        gpt("mt-nlg-530b", 105, 20480, 128)}) {
    all.push_back(shape);
  }
  all.push_back(bloom());
  for (const ModelShape& shape :
       {mpt("mpt-125m", 12, 768, 12), mpt("mpt-350m", 24, 1024, 16), mpt("mpt-760m", 24, 1536, 12),
        mpt("mpt-1b", 24, 2048, 16), mpt("mpt-3b", 32, 2560, 20), mpt("mpt-7b", 32, 4096, 32),
        mpt("mpt-13b", 40, 5120, 40), mpt("mpt-30b", 48, 7168, 56), mpt("mpt-70b", 80, 8192, 64)}) {
    all.push_back(shape);
  }
}

/// Those of BigScience's first trials, 32 heads: experiments/gpt2-meg/*.slurm.
void add_trial_gpts(std::vector<ModelShape>& all) {
  for (const ModelShape& shape :
       {gpt("gpt2-7.5b", 36, 4096, 32), gpt("gpt2-14b", 32, 6144, 32),
        gpt("gpt2-18b", 40, 6144, 32), gpt("gpt2-24b", 40, 7168, 32), gpt("gpt2-25b", 40, 7168, 32),
        gpt("gpt2-30b", 48, 7168, 32), gpt("gpt2-39b", 48, 8192, 32), gpt("gpt2-52b", 64, 8192, 32),
        gpt("gpt2-65b", 64, 9216, 32), gpt("gpt2-97b", 64, 11264, 32),
        gpt("gpt2-116b", 64, 12288, 32), gpt("gpt2-206b", 64, 16384, 32)}) {
    all.push_back(shape);
  }
}

void add_llamas(std::vector<ModelShape>& all) {
  for (const ModelShape& shape :
       {llama("llama-7b", {32, 4096, 32, 32, 11008, 32000, 2048}),
        llama("llama-13b", {40, 5120, 40, 40, 13824, 32000, 2048}),
        llama("llama-33b", {60, 6656, 52, 52, 17920, 32000, 2048}),
        llama("llama-65b", {80, 8192, 64, 64, 22016, 32000, 2048}),
        llama("llama2-7b", {32, 4096, 32, 32, 11008, 32000, 4096}),
        llama("llama2-13b", {40, 5120, 40, 40, 13824, 32000, 4096}),
        llama("llama2-70b", {80, 8192, 64, 8, 28672, 32000, 4096}),
        llama("llama3-8b", {32, 4096, 32, 8, 14336, 128256, 8192}),
        llama("llama3-70b", {80, 8192, 64, 8, 28672, 128256, 8192}),
        llama("llama3-405b", {126, 16384, 128, 8, 53248, 128256, 8192}),
        nemotron("nemotron-8b", {32, 4096, 32, 32, 16384, 256000, 4096}),
        nemotron("nemotron-15b", {32, 6144, 48, 8, 24576, 256000, 4096}),
        nemotron("nemotron-22b", {40, 6144, 48, 48, 24576, 256000, 4096}),
        nemotron("nemotron-340b", {96, 18432, 96, 8, 73728, 256000, 4096}),
        mixtral("mixtral-8x7b", {32, 4096, 32, 8, 14336, 32000, 4096}),
        mixtral("mixtral-8x22b", {56, 6144, 48, 8, 16384, 32000, 4096})}) {
    all.push_back(shape);
  }
}

void add_encoders(std::vector<ModelShape>& all) {
  for (const ModelShape& shape :
       {bert("bert-base", 12, 768, 12, 30522), bert("bert-large", 24, 1024, 16, 30522),
        bert("bert-4b", 48, 2560, 32, 30592), bert("bert-20b", 48, 6144, 96, 30592),
        bert("bert-100b", 96, 9216, 96, 30592),
        t5("t5-large", {24, 1024, 16, 64, 4096, 32128, false}),
        t5("t5-3b", {24, 1024, 32, 128, 16384, 32128, false}),
        t5("t5-11b", {24, 1024, 128, 128, 65536, 32128, false}),
        t5("nemo-t5-220m", {12, 768, 12, 64, 2048, 29184, true}),
        t5("nemo-t5-3b", {24, 2048, 32, 64, 5120, 29184, true}),
        t5("nemo-mt5-390m", {12, 768, 12, 64, 2048, 250112, true}),
        t5("nemo-mt5-3b", {24, 2048, 32, 64, 5120, 250112, true}), resnet("resnet50", {3, 4, 6, 3}),
        resnet("resnet101", {3, 4, 23, 3}), resnet("resnet152", {3, 8, 36, 3})}) {
    all.push_back(shape);
  }
}

/// Letters and digits, and points between digits; lower case; without what is in brackets.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, text.find('('))) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0 || c == '.') {
      result += static_cast<char>(std::tolower(letter));
    }
  }
  return result;
}

struct Alias {
  std::string_view text;  ///< Plain.
  std::string_view model;
};

constexpr std::array kAliases = {
    Alias{"llama3.18b", "llama3-8b"},     Alias{"llama3.170b", "llama3-70b"},
    Alias{"llama3.1405b", "llama3-405b"}, Alias{"llama31405b", "llama3-405b"},
    Alias{"llama27b", "llama2-7b"},       Alias{"bloom", "bloom-176b"},
    Alias{"bloom176b", "bloom-176b"},     Alias{"gpt18.4b", "gpt-18b"},
    Alias{"gpt39.1b", "gpt-39b"},         Alias{"gpt175b", "gpt3-175b"},
    Alias{"gpt3175b", "gpt3-175b"},       Alias{"gpt530b", "mt-nlg-530b"},
    Alias{"bert110m", "bert-base"},       Alias{"t5220m", "nemo-t5-220m"},
    Alias{"mt5390m", "nemo-mt5-390m"},    Alias{"mt53b", "nemo-mt5-3b"},
    Alias{"gpt3", "gpt3-175b"},           Alias{"llama3.38b", "llama3-8b"},
    Alias{"llama3.370b", "llama3-70b"},   Alias{"mixtral8x7b", "mixtral-8x7b"},
};

}  // namespace

ModelShape gpt_shape(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                     std::int64_t vocab) {
  ModelShape shape;
  shape.name = std::move(name);
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.kv_heads = heads;
  shape.head_size = heads > 0 ? hidden / heads : 0;
  shape.ffn = 4 * hidden;
  shape.vocab = vocab;
  shape.positions = 2048;
  shape.seq_len = 2048;
  return shape;
}

const std::vector<ModelShape>& models() {
  static const std::vector<ModelShape> kAll = [] {
    std::vector<ModelShape> result;
    add_gpts(result);
    add_trial_gpts(result);
    add_llamas(result);
    add_encoders(result);
    return result;
  }();
  return kAll;
}

const ModelShape& model(std::string_view name) {
  const auto found = std::ranges::find(models(), name, &ModelShape::name);
  if (found != models().end()) return *found;
  std::string names;
  for (const ModelShape& known : models()) names += (names.empty() ? "" : ", ") + known.name;
  throw Error(ErrorKind::kInvalidArgument,
              "there is no model '" + std::string(name) + "'; known are: " + names);
}

const ModelShape* model_of_text(std::string_view text) {
  // NeMo's T5 of 3B and Google's have the same name but for the hyphen.
  if (text == "T5 3B") return &model("nemo-t5-3b");
  const std::string wanted = plain(text);
  for (const Alias& alias : kAliases) {
    if (alias.text == wanted) return &model(alias.model);
  }
  const auto found = std::ranges::find_if(
      models(), [&](const ModelShape& shape) { return plain(shape.name) == wanted; });
  return found == models().end() ? nullptr : &*found;
}

}  // namespace trireme::analytic
