#pragma once

#include <pybind11/numpy.h>
#include <torch/csrc/utils/pybind.h>

#include <span>

#include "python/core/bind.h"

namespace trireme::python {

/// Each adds a part of packs/ or trireme/kernels to the module.
void bind_coco(py::module_& module);
void bind_components(py::module_& module);
void bind_dice(py::module_& module);
void bind_optimizers(py::module_& module);
void bind_ranking(py::module_& module);
void bind_sources_of_packs(py::module_& module);
void bind_word_errors(py::module_& module);

/// In C order and of type T, else a copy that is.
template <typename T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

/// Its elements; the array is kept by the caller.
template <typename T>
std::span<const T> elements(const Array<T>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

}  // namespace trireme::python
