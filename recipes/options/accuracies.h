#pragma once

#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "trireme/model.h"

namespace trireme::recipes {

/// A name for each file: its own without folder and ending, or the whole path where two have that.
inline std::vector<std::string> names_of(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> names;
  for (const auto& file : files) {
    const auto has_name = [&](const auto& other) { return other.stem() == file.stem(); };
    names.push_back(std::ranges::count_if(files, has_name) == 1 ? file.stem().string()
                                                                : file.string());
  }
  return names;
}

/// `accuracy`, the part of the samples that is right, and behind it that of each file, `dev_accuracy` of
/// `dev.tsv`, where there are several.
///
/// is_there_B   the samples that count, as of places of packed rows.
/// names        of the files; none in a training, whose files are not told apart.
inline void add_accuracies_where(const torch::Tensor& is_there_B, const torch::Tensor& is_right_B,
                                 const torch::Tensor& file_B, const std::vector<std::string>& names,
                                 Losses& losses) {
  const auto add = [&](const torch::Tensor& counts_B, const std::string& name) {
    const auto num_right = is_right_B.logical_and(counts_B).sum().to(torch::kFloat);
    losses.push_back(metric(sum_loss(num_right, counts_B.sum()), name));
  };
  add(is_there_B, "accuracy");
  for (std::size_t f = 0; names.size() > 1 && f < names.size(); ++f) {
    add((file_B == static_cast<std::int64_t>(f)).logical_and(is_there_B), names[f] + "_accuracy");
  }
}

/// The same of all samples.
inline void add_accuracies(const torch::Tensor& is_right_B, const torch::Tensor& file_B,
                           const std::vector<std::string>& names, Losses& losses) {
  losses.push_back(metric(mean_loss(is_right_B.to(torch::kFloat).mean()), "accuracy"));
  for (std::size_t f = 0; names.size() > 1 && f < names.size(); ++f) {
    const auto is_of_file_B = file_B == static_cast<std::int64_t>(f);
    const auto num_right = is_right_B.logical_and(is_of_file_B).sum().to(torch::kFloat);
    losses.push_back(metric(sum_loss(num_right, is_of_file_B.sum()), names[f] + "_accuracy"));
  }
}

/// How good a guess is that reads no text: the most frequent label of each file.
///
///     data/dev.tsv: of 970 pairs 35.36 % are 'entailment'
///
/// source   text::LabelledPairSource or text::PairToTextSource.
template <typename Source>
std::string show_frequent_labels(const Source& source) {
  std::vector<std::vector<std::int64_t>> counts(source.files().size(),
                                                std::vector<std::int64_t>(source.labels().size()));
  for (std::int64_t i = 0; i < source.num_samples(); ++i) {
    const auto pair = source.pair(i);
    ++counts[static_cast<std::size_t>(pair.file)][static_cast<std::size_t>(pair.label)];
  }
  std::string text;
  for (std::size_t f = 0; f < counts.size(); ++f) {
    const auto total = std::accumulate(counts[f].begin(), counts[f].end(), std::int64_t{0});
    const auto most = std::ranges::max_element(counts[f]);
    char percent[32];
    std::snprintf(percent, sizeof percent, "%.2f",
                  100.0 * static_cast<double>(*most) / static_cast<double>(total));
    text += source.files()[f].string() + ": of " + std::to_string(total) + " pairs " + percent +
            " % are '" + source.labels()[static_cast<std::size_t>(most - counts[f].begin())] +
            "'\n";
  }
  return text;
}

}  // namespace trireme::recipes
