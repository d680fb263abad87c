#include "recipes/t5/examples.h"

#include <torch/types.h>

#include <algorithm>
#include <vector>

#include "recipes/t5/complete.h"

namespace trireme::recipes::t5 {
namespace {

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

std::string show(const data::CorruptedText& text, const std::vector<data::Token>& completion,
                 const text::Tokenizer& tokenizer) {
  std::string result = barred(tokenizer.decode(text.inputs));
  const auto said = data::hidden_spans(completion, tokenizer.special());
  for (const auto& [index, tokens] : data::hidden_spans(text.targets, tokenizer.special())) {
    const auto found = said.find(index);
    const std::string model =
        found == said.end() ? "nothing" : quoted(tokenizer.decode(found->second));
    result += "  <extra_id_" + std::to_string(index) + ">  model " + model + "  text " +
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
    const data::CorruptedText text = source.text_of({.index = index});
    const auto inputs_BS = torch::tensor(text.inputs, torch::kInt).unsqueeze(0);
    const auto rows = complete(model, inputs_BS,
                               {.end = tokenizer.end(),
                                .vocabulary = tokenizer.vocabulary_size(),
                                .max_tokens = source.lengths().targets});
    result += "sample " + std::to_string(index) + "\n" + show(text, rows[0], tokenizer);
  }
  return result;
}

}  // namespace trireme::recipes::t5
