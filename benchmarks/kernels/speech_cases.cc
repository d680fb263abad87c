#include "benchmarks/kernels/speech_cases.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

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

}  // namespace

std::vector<CaseEntry> speech_cases() {
  return {{.name = "word_errors/10k",
           .shape = "10,000 utterances of 10-30 words",
           .peers = {"rapidfuzz", "jiwer"},
           .make = [](const CaseSetting&) { return std::make_unique<WordErrorsCase>(10'000); }}};
}

}  // namespace trireme::kernels::bench
