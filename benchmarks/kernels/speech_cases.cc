#include "benchmarks/kernels/speech_cases.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "packs/speech/kernels/log_mel.h"
#include "packs/speech/metrics/word_error_rate.h"

namespace trireme::kernels::bench {
namespace {

using Random = std::mt19937_64;

/// Words of some 2 to 11 letters.
std::vector<std::string> make_vocabulary(Random& random) {
  std::vector<std::string> words;
  for (int w = 0; w < 5000; ++w) {
    std::string word;
    for (int rest = w; rest > 0; rest /= 26) word += static_cast<char>('a' + rest % 26);
    for (auto more = 1 + random() % 8; more > 0; --more) {
      word += static_cast<char>('a' + random() % 26);
    }
    words.push_back(std::move(word));
  }
  return words;
}

/// An utterance and what was recognised of it: of 100 words 6 are others, 2 are missing, and 2 are
/// added.
class Speaker {
 public:
  void say(std::string& reference, std::string& hypothesis) {
    for (auto left = 10 + random_() % 21; left > 0; --left) {
      const std::string& said = any_word();
      append(reference, said);
      const auto chance = random_() % 100;
      if (chance >= 2) append(hypothesis, chance < 8 ? any_word() : said);
      if (chance >= 98) append(hypothesis, any_word());
    }
  }

 private:
  /// The k-th most frequent is chosen about 1 / k times as often as the first.
  const std::string& any_word() {
    const double share = std::uniform_real_distribution<double>()(random_);
    const double rank = std::pow(static_cast<double>(words_.size()), share);
    return words_[std::min(static_cast<std::size_t>(rank), words_.size()) - 1];
  }

  static void append(std::string& text, const std::string& word) {
    if (!text.empty()) text += ' ';
    text += word;
  }

  Random random_{1};
  const std::vector<std::string> words_ = make_vocabulary(random_);
};

class WordErrorsCase final : public Case {
 public:
  explicit WordErrorsCase(int num_utterances)
      : references_(num_utterances), hypotheses_(num_utterances) {
    Speaker speaker;
    for (int i = 0; i < num_utterances; ++i) speaker.say(references_[i], hypotheses_[i]);
    add_lines("reference", references_);
    add_lines("hypothesis", hypotheses_);
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    all_ = {};
    for (std::size_t i = 0; i < references_.size(); ++i) {
      all_ += speech::count_word_errors(references_[i], hypotheses_[i]);
    }
  }

  /// Errors together: alignments of equal cost differ in their kinds.
  Tensors outputs() const override {
    Tensors outputs;
    outputs.add<std::int64_t>("words", {1})[0] = all_.num_words;
    outputs.add<std::int64_t>("errors", {1})[0] = all_.errors();
    return outputs;
  }

 private:
  void add_lines(const std::string& name, const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + '\n';
    std::ranges::copy(text, inputs_.add<std::uint8_t>(name, {std::ssize(text)}).begin());
  }

  Tensors inputs_;
  std::vector<std::string> references_, hypotheses_;
  speech::WordErrors all_;
};

/// Noise whose loudness goes up and down three times a second, over a fainter one.
std::vector<float> make_utterance(std::int64_t num_samples) {
  Random random{1};
  std::normal_distribution<float> noise;
  std::vector<float> samples;
  for (std::int64_t i = 0; i < num_samples; ++i) {
    const double loudness = std::pow(std::sin(6e-4 * static_cast<double>(i)), 4);
    samples.push_back(noise(random) * static_cast<float>(0.001 + 0.1 * loudness));
  }
  return samples;
}

/// One utterance to features; options by torchaudio's names.
class LogMelCase final : public Case {
 public:
  LogMelCase(const speech::MelOptions& options, int num_threads)
      : log_mel_(options),
        spread_(on_threads(num_threads)),
        samples_(make_utterance(kSamples)),
        features_(static_cast<std::size_t>(frames() * options.n_mels)) {
    std::ranges::copy(samples_, inputs_.add<float>("samples", {kSamples}).begin());
    for (const auto& [name, value] : {std::pair{"n_fft", log_mel_.options().n_fft},
                                      {"win_length", log_mel_.options().win_length},
                                      {"hop_length", log_mel_.options().hop_length},
                                      {"n_mels", log_mel_.options().n_mels}}) {
      inputs_.options[name] = std::to_string(value);
    }
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override { log_mel_(samples_, features_, spread_); }

  Tensors outputs() const override {
    Tensors outputs;
    const auto to = outputs.add<float>("features", {frames(), log_mel_.options().n_mels});
    std::ranges::copy(features_, to.begin());
    return outputs;
  }

 private:
  static constexpr std::int64_t kSamples = 15 * 16000;

  std::int64_t frames() const { return log_mel_.num_frames(kSamples); }

  speech::LogMel log_mel_;
  Spread spread_;
  Tensors inputs_;
  std::vector<float> samples_, features_;
};

/// In f32 a quiet bin has the rounding of the loudest one of its frame, and a filter of 400x128 may have one bin alone;
/// judges/log_mel says that both are as near to f64.
CaseEntry log_mel_entry(const std::string& name, const std::string& shape,
                        const speech::MelOptions& options) {
  return {.name = "log_mel/" + name,
          .shape = shape,
          .tolerance = 2e-4,
          .peers = {"torchaudio"},
          .make = [options](const CaseSetting& setting) {
            return std::make_unique<LogMelCase>(options, setting.num_threads);
          }};
}

}  // namespace

std::vector<CaseEntry> speech_cases() {
  return {log_mel_entry("512x80", "15 s: 1,501 frames",
                        {.n_fft = 512, .win_length = 320, .hop_length = 160, .n_mels = 80}),
          log_mel_entry("400x128", "15 s: 1,201 frames", {}),
          {.name = "word_errors/10k",
           .shape = "10,000 utterances of 10-30 words",
           .peers = {"rapidfuzz", "jiwer"},
           .make = [](const CaseSetting&) { return std::make_unique<WordErrorsCase>(10'000); }}};
}

}  // namespace trireme::kernels::bench
