#include "benchmarks/kernels/attention_cases.h"

#include <algorithm>
#include <string>

#include "benchmarks/kernels/dropout_checks.h"
#include "benchmarks/kernels/random_values.h"
#include "packs/text/kernels/attention.h"

namespace trireme::kernels::bench {
namespace {

constexpr std::int64_t kSequences = 4;
constexpr std::int64_t kLength = 512;
constexpr std::int64_t kHeads = 16;
constexpr std::int64_t kWidth = 64;

class AttentionCase final : public Case {
 public:
  AttentionCase(int num_threads, double drop_probability)
      : drop_probability_(drop_probability), spread_(on_threads(num_threads)) {
    const std::vector<std::int64_t> shape = {kSequences, kLength, kHeads, kWidth};
    std::uint64_t seed = 0;
    for (const char* name : {"q", "k", "v", "gradient_out"}) {
      fill_normal(inputs_.add<float>(name, shape), ++seed);
    }
    inputs_.options["drop_probability"] = std::to_string(drop_probability);
    for (const char* name : kMade) outputs_.add<float>(name, shape);
    log_sum_.resize(kSequences * kLength * kHeads);
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override { make(drop_probability_, outputs_); }

  /// With dropout only what hardly depends on which elements are dropped.
  void check() override {
    make(drop_probability_, outputs_);
    if (drop_probability_ == 0) {
      checked_ = outputs_;
      return;
    }
    Tensors plain = outputs_;
    make(0, plain);
    for (const char* name : kMade) {
      add_statistics(name, outputs_.get<float>(name), plain.get<float>(name), checked_);
    }
    const auto with = [&](const char* made, const char* given) {
      return product(outputs_.get<float>(made), inputs_.get<float>(given));
    };
    add_identity("out_of_v", with("gradient_v", "v"), with("out", "gradient_out"), checked_);
    add_identity("q_of_k", with("gradient_q", "q"), with("gradient_k", "k"), checked_);
  }

  Tensors outputs() const override { return checked_; }

 private:
  void make(double drop_probability, Tensors& outputs) {
    const text::AttentionShape shape{offsets_, kHeads, kWidth};
    const text::AttentionSettings options{.drop_probability = drop_probability, .seed = ++seed_};
    const auto of = [&](const char* name) { return inputs_.get<float>(name).data(); };
    float* made[4];
    std::ranges::transform(kMade, made, [&](const char* name) {
      return const_cast<float*>(outputs.get<float>(name).data());
    });
    text::attention(shape, options, of("q"), of("k"), of("v"), made[0], log_sum_.data(), spread_);
    text::attention_backward(shape, options,
                             {of("q"), of("k"), of("v"), made[0], log_sum_.data(),
                              of("gradient_out"), made[1], made[2], made[3]},
                             spread_);
  }

  static constexpr const char* kMade[] = {"out", "gradient_q", "gradient_k", "gradient_v"};

  const double drop_probability_;
  const Spread spread_;
  const std::vector<std::int64_t> offsets_ = {0, kLength, 2 * kLength, 3 * kLength, 4 * kLength};
  Tensors inputs_, outputs_, checked_;
  std::vector<float> log_sum_;
  std::uint64_t seed_ = 0;
};

CaseEntry attention_entry(const std::string& variant, double drop_probability) {
  constexpr double kScores = 1.0 * kSequences * kHeads * kLength * kLength;
  const bool has_dropout = drop_probability > 0;
  return {.name = "attention/" + variant,
          .shape = has_dropout ? "f32, 4 x 512, 16 x 64, dropout 0.1" : "f32, 4 x 512, 16 x 64",
          .flops = kScores * kWidth * 14,
          .tolerance = has_dropout ? kStatisticsTolerance : 1e-3,
          .tolerances = {{"out_of_v", kIdentityTolerance}, {"q_of_k", kIdentityTolerance}},
          .peers = {"torch"},
          .make = [drop_probability](const CaseSetting& setting) {
            return std::make_unique<AttentionCase>(setting.num_threads, drop_probability);
          }};
}

}  // namespace

std::vector<CaseEntry> attention_cases() {
  return {attention_entry("plain", 0), attention_entry("dropout", 0.1)};
}

}  // namespace trireme::kernels::bench
