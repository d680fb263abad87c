#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/json.h"
#include "trireme/plan/analytic/failures.h"
#include "trireme/plan/analytic/layout_search.h"

namespace trireme::analytic {

/// What a search was about, for those who print it.
struct ShownSearch {
  const ModelShape& shape;
  const Machine& machine;
  const LayoutSearch& search;
  const LayoutsFound& found;
  std::vector<FoundLayout>
      published;  ///< Published layouts as they are predicted, in the order of `sources`.
  std::vector<PublishedLayout> sources;
  double num_samples = 0;  ///< Of a training; 0: not asked.
  double num_tokens = 0;   ///< The same in tokens, of samples that are as long as each layout's.
  std::optional<Goodput> goodput = {};  ///< Of as many hosts, where failures were asked about.

  bool has_length() const { return num_samples > 0 || num_tokens > 0; }
};

/// Published layouts of the model, predicted where their split is published and can be; the others with a step of 0.
void add_published(const AchievedByDevice& achieved, ShownSearch& shown);

std::string show(const ShownSearch& shown);
Json to_json(const ShownSearch& shown);

}  // namespace trireme::analytic
