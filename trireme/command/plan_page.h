#pragma once

#include <functional>
#include <map>
#include <string>

#include "trireme/base/json.h"

namespace trireme::command {

/// What the page of `trireme plan --serve` asks for.
struct PlanPage {
  /// What can be chosen, and what is chosen at first.
  Json choices;

  /// The layouts for values of the page's controls, by their names. Called by several threads at a time; what it throws
  /// is shown on the page.
  std::function<Json(const std::map<std::string, std::string>& values)> plan;
};

/// Serves the page on the loopback until the process is ended.
///
/// port      0: any that is free.
/// listens   told the page's address before it can be opened.
/// Errors    kUnavailable where the port is taken.
void serve_plan_page(const PlanPage& page, int port,
                     const std::function<void(const std::string& address)>& listens);

}  // namespace trireme::command
