#include <pybind11/stl.h>

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "packs/speech/metrics/word_error_rate.h"
#include "python/packs/bind.h"
#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/error.h"

namespace trireme::python {
namespace {

using speech::WordErrors;
using Texts = std::vector<std::string>;

speech::WordErrorOptions options_of(bool as_sclite, bool ignores_case) {
  return {.costs = as_sclite ? speech::AlignmentCosts::sclite() : speech::AlignmentCosts{},
          .ignores_case = ignores_case};
}

WordErrors count_word_errors(const Texts& references, const Texts& hypotheses, bool as_sclite,
                             bool ignores_case) {
  if (references.size() != hypotheses.size()) {
    throw Error(ErrorKind::kInvalidArgument,
                "there are " + std::to_string(references.size()) + " references and " +
                    std::to_string(hypotheses.size()) + " hypotheses; give one for each");
  }
  const auto options = options_of(as_sclite, ignores_case);
  std::vector<WordErrors> counts(references.size());
  operators::internal::on_torch_threads(std::ssize(counts), [&](std::int64_t i) {
    counts[i] = speech::count_word_errors(references[i], hypotheses[i], options);
  });
  WordErrors all;
  for (const WordErrors& one : counts) all += one;
  return all;
}

/// One of `match`, `substitution`, `insertion`, `deletion`; the two words.
using Edit = std::tuple<std::string, std::string, std::string>;

std::vector<Edit> align_words(const std::string& reference, const std::string& hypothesis,
                              bool as_sclite, bool ignores_case) {
  constexpr std::string_view kNames[] = {"match", "substitution", "insertion", "deletion"};
  std::vector<Edit> edits;
  for (const speech::WordEdit& edit :
       speech::align_words(reference, hypothesis, options_of(as_sclite, ignores_case))) {
    edits.emplace_back(kNames[static_cast<int>(edit.kind)], edit.reference, edit.hypothesis);
  }
  return edits;
}

}  // namespace

void bind_word_errors(py::module_& module) {
  py::class_<WordErrors>(module, "WordErrors")
      .def_readonly("num_words", &WordErrors::num_words)
      .def_readonly("substitutions", &WordErrors::substitutions)
      .def_readonly("deletions", &WordErrors::deletions)
      .def_readonly("insertions", &WordErrors::insertions)
      .def_readonly("num_utterances", &WordErrors::num_utterances)
      .def_readonly("wrong_utterances", &WordErrors::wrong_utterances)
      .def_property_readonly("errors", &WordErrors::errors)
      .def_property_readonly("correct_words", &WordErrors::correct_words)
      .def_property_readonly("word_error_rate", &WordErrors::word_error_rate)
      .def_property_readonly("sentence_error_rate", &WordErrors::sentence_error_rate)
      .def(
          "__add__", [](WordErrors sum, const WordErrors& other) { return sum += other; },
          py::arg("other"));
  module.def("count_word_errors", &count_word_errors, py::arg("references"), py::arg("hypotheses"),
             py::arg("as_sclite"), py::arg("ignores_case"), Unlocked());
  module.def("align_words", &align_words, py::arg("reference"), py::arg("hypothesis"),
             py::arg("as_sclite"), py::arg("ignores_case"), Unlocked());
}

}  // namespace trireme::python
