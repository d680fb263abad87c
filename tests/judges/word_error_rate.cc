#include "packs/speech/metrics/word_error_rate.h"

#include <sstream>
#include <string>
#include <vector>

#include "tests/judges/judge.h"

namespace trireme::judges {
namespace {

/// The lines of a u8 tensor.
std::vector<std::string> lines_of(const Tensors& inputs, const std::string& name) {
  const auto bytes = inputs.get<std::uint8_t>(name);
  std::istringstream text(std::string(bytes.begin(), bytes.end()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// reference, hypothesis [bytes], a line for each utterance; option costs, "unit" or "sclite"
///     -> counts [utterances, 5]: words, substitutions, deletions, insertions, whether wrong
Tensors word_errors(const Tensors& inputs) {
  const auto references = lines_of(inputs, "reference");
  const auto hypotheses = lines_of(inputs, "hypothesis");
  speech::WordErrorOptions options;
  if (inputs.options.at("costs") == "sclite") options.costs = speech::AlignmentCosts::sclite();
  Tensors outputs;
  auto count = outputs.add<std::int64_t>("counts", {std::ssize(references), 5}).begin();
  for (std::size_t i = 0; i < references.size(); ++i) {
    const auto errors = speech::count_word_errors(references[i], hypotheses.at(i), options);
    for (const std::int64_t n : {errors.num_words, errors.substitutions, errors.deletions,
                                 errors.insertions, errors.wrong_utterances}) {
      *count++ = n;
    }
  }
  return outputs;
}

}  // namespace

void add_word_error_rate(Operations& operations) { operations["word_errors"] = word_errors; }

}  // namespace trireme::judges
