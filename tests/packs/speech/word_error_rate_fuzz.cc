// Any bytes as a reference and a hypothesis, halves of the input: counts that fit their words and
// their alignment.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "packs/speech/metrics/word_error_rate.h"

using namespace trireme::speech;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kLimit = 2000;  // alignment takes the product of both
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min(size, kLimit));
  const std::string_view reference = bytes.substr(0, bytes.size() / 2);
  const std::string_view hypothesis = bytes.substr(bytes.size() / 2);
  for (const auto& costs : {AlignmentCosts{}, AlignmentCosts::sclite()}) {
    const auto there = count_word_errors(reference, hypothesis, {.costs = costs});
    const auto back = count_word_errors(hypothesis, reference, {.costs = costs});
    if (there.correct_words() < 0) std::abort();
    if (there.correct_words() + there.substitutions + there.insertions != back.num_words) {
      std::abort();
    }
    if ((there.errors() == 0) != (there.wrong_utterances == 0)) std::abort();
    const auto edits = align_words(reference, hypothesis, {.costs = costs});
    const auto num = [&](WordEditKind kind) {
      return std::ranges::count(edits, kind, &WordEdit::kind);
    };
    if (num(WordEditKind::kSubstitution) != there.substitutions) std::abort();
    if (num(WordEditKind::kDeletion) != there.deletions) std::abort();
    if (num(WordEditKind::kInsertion) != there.insertions) std::abort();
    if (num(WordEditKind::kMatch) != there.correct_words()) std::abort();
    const auto same = count_word_errors(reference, reference, {.costs = costs});
    if (same.errors() != 0) std::abort();
  }
  return 0;
}
