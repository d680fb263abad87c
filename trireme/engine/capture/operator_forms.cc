#include "trireme/engine/capture/operator_forms.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace trireme::capture {
namespace {

using c10::OperatorHandle;

/// Operators that write their results to arguments, by name.
using Forms = std::unordered_map<std::string, std::vector<OperatorHandle>>;

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

const Forms& forms() {
  static const Forms all = [] {
    Forms found;
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      const auto op = dispatcher.findSchema(name);
      // Others call the form that brings memory, and copy.
      if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) continue;
      const auto& arguments = op->schema().arguments();
      if (!arguments.empty() && arguments.back().is_out()) found[name.name].push_back(*op);
    }
    return found;
  }();
  return all;
}

/// `out` takes what `op` takes, and then a tensor for each result.
bool is_form_of(const OperatorHandle& out, const OperatorHandle& op) {
  const auto& given = op.schema().arguments();
  const auto& taken = out.schema().arguments();
  const std::size_t num_results = op.schema().returns().size();
  if (taken.size() != given.size() + num_results) return false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (taken[i].name() != given[i].name() || *taken[i].type() != *given[i].type() ||
        writes(taken[i])) {
      return false;
    }
  }
  return std::all_of(taken.begin() + static_cast<std::ptrdiff_t>(given.size()), taken.end(),
                     [](const c10::Argument& argument) { return writes(argument); });
}

bool use_out_form(TapeStep& step) {
  const auto known = forms().find(step.op->schema().name());
  if (known == forms().end()) return false;
  for (const OperatorHandle& out : known->second) {
    if (!is_form_of(out, *step.op)) continue;
    step.op = out;
    for (const at::Tensor& made : step.made) step.arguments.emplace_back(made);
    return true;
  }
  return false;
}

}  // namespace

bool write_in_place(TapeStep& step, std::vector<TapeBuffer>& buffers) {
  static const std::set<std::string> kRoom = {"aten::empty", "aten::empty_like",
                                              "aten::empty_strided", "aten::new_empty",
                                              "aten::new_empty_strided"};
  if (!step.op || step.made.empty() || step.made.size() != step.results.size()) return false;
  for (std::size_t i = 0; i < step.made.size(); ++i) {
    // One that brings more than it gives computes something else there first.
    if (step.results[i] < 0 || buffers[step.results[i]].bytes != step.made[i].nbytes())
      return false;
  }
  const bool is_room = kRoom.contains(step.op->schema().name());
  if (!is_room && !use_out_form(step)) return false;
  for (const int buffer : step.results) buffers[buffer].is_written = true;
  step.results.clear();
  return is_room;
}

}  // namespace trireme::capture
