#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "recipes/options/accuracies.h"
#include "recipes/options/classify_options.h"
#include "trireme/model.h"

namespace trireme::recipes {

/// Pairs of texts to be classified, and held-out ones, if any.
///
/// Source, Vocabulary   text::LabelledPairSource and text::WordPieces, or text::PairToTextSource and text::Tokenizer.
template <typename Source, typename Vocabulary>
struct PairData {
  Vocabulary vocabulary;
  std::shared_ptr<const Source> training;
  std::shared_ptr<const Source> held_out;  ///< With the labels of `training`; may be null.
};

/// pairs    the source's options, but for columns and labels, which `options` have.
/// Errors   those of the source and of columns_of.
template <typename Source, typename Vocabulary, typename PairOptions>
PairData<Source, Vocabulary> read_pairs(const ClassifyOptions& options, const std::string& recipe,
                                        const Vocabulary& vocabulary, PairOptions pairs) {
  pairs.columns = columns_of(options, recipe);
  pairs.labels = options.labels;
  pairs.padded = options.padded;
  auto training = std::make_shared<Source>(options.training, vocabulary, pairs);
  if (options.held_out.empty()) return {vocabulary, training, nullptr};
  pairs.labels = training->labels();
  return {vocabulary, training, std::make_shared<Source>(options.held_out, vocabulary, pairs)};
}

/// Fine-tuning on such pairs.
///
/// losses_of   (net, batch, names of the files that an evaluation tells apart) -> Losses.
/// show        (net, source) -> what the model says of some held-out pairs, for people.
template <typename Net, typename Data, typename LossesOf, typename Show>
Workload make_pair_workload(Net net, const Data& data, LossesOf losses_of, Show show) {
  std::vector<std::string> names;
  if (data.held_out) names = names_of(data.held_out->files());
  const auto forward = [net, names, losses_of](const Batch& batch) mutable {
    return losses_of(net, batch, net->is_training() ? std::vector<std::string>() : names);
  };
  Workload workload{.model = make_model(net.ptr(), forward),
                    .training = data.training,
                    .evaluation = data.held_out};
  if (data.held_out) {
    workload.examples = [net, held_out = data.held_out, show] {
      return show(net, *held_out) + show_frequent_labels(*held_out);
    };
  }
  return workload;
}

}  // namespace trireme::recipes
