#include "recipes/t5/examples.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <vector>

#include "recipes/t5/complete.h"

namespace trireme::recipes::t5 {
namespace {

using data::Token;
using Tokens = std::vector<Token>;

struct Sample {
  Tokens inputs;
  Tokens targets;
};

Sample read(const text::DenoisingSource& source, std::int64_t index) {
  Sample sample{Tokens(source.lengths().inputs), Tokens(source.lengths().targets)};
  const std::array places = {std::as_writable_bytes(std::span(sample.inputs)),
                             std::as_writable_bytes(std::span(sample.targets))};
  source.read({.index = index}, places);
  return sample;
}

/// What follows each sentinel up to the next, by its number. What comes before the first is lost,
/// and of a repeated one all but the last.
std::map<Token, Tokens> spans_of(const Tokens& targets, const data::SpecialTokens& special) {
  std::map<Token, Tokens> spans;
  Tokens* current = nullptr;
  for (const Token token : targets) {
    const Token number = special.first_sentinel - token;
    if (token == special.end) break;
    if (number >= 0 && number < special.num_sentinels) {
      current = &(spans[number] = {});
    } else if (current != nullptr) {
      current->push_back(token);
    }
  }
  return spans;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else {
      result += c;
    }
  }
  return result + "'";
}

/// Each line behind a bar.
std::string barred(const std::string& text) {
  std::string result = "  | ";
  for (const char c : text) result += c == '\n' ? std::string("\n  | ") : std::string(1, c);
  return result + "\n";
}

std::string show(const Sample& sample, const Tokens& completion, const text::Tokenizer& tokenizer) {
  std::string result = barred(tokenizer.decode(sample.inputs));
  const auto said = spans_of(completion, tokenizer.special());
  for (const auto& [number, tokens] : spans_of(sample.targets, tokenizer.special())) {
    const auto found = said.find(number);
    const std::string model =
        found == said.end() ? "nothing" : quoted(tokenizer.decode(found->second));
    result += "  <extra_id_" + std::to_string(number) + ">  model " + model + "  text " +
              quoted(tokenizer.decode(tokens)) + "\n";
  }
  return result;
}

}  // namespace

std::string show_completions(const T5& model, const text::DenoisingSource& source,
                             const text::Tokenizer& tokenizer, std::int64_t num_samples) {
  const std::int64_t count = std::min(num_samples, source.num_samples());
  std::string result;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = i * source.num_samples() / count;
    const Sample sample = read(source, index);
    const auto inputs_BS = torch::tensor(sample.inputs, torch::kInt).unsqueeze(0);
    const auto rows = complete(model, inputs_BS,
                               {.end = tokenizer.end(), .max_tokens = source.lengths().targets});
    result += "sample " + std::to_string(index) + "\n" + show(sample, rows[0], tokenizer);
  }
  return result;
}

}  // namespace trireme::recipes::t5
