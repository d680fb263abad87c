#include "recipes/t5/show_tokens.h"

#include "packs/text/data/token_index.h"
#include "trireme/plan/graph/text_table.h"

namespace trireme::recipes::t5 {

ShownDocument show_tokens(const std::string& file) {
  const text::TokenIndex index = text::load_token_index(file);
  graph::Table table({"", ">documents", ">shards", ">tokens"});
  const auto add = [&table](const char* name, const text::TokenSplit& split) {
    table.add({name, std::to_string(split.documents), std::to_string(split.shards.size()),
               std::to_string(split.num_tokens())});
  };
  add("training", index.training);
  add("held out", index.held_out);
  return {.json = text::to_json(index).dump(),
          .text = "tokens below " + std::to_string(index.vocabulary_size) +
                  "\nread: " + text::to_text(index.report) + "\n" + table.text()};
}

}  // namespace trireme::recipes::t5
