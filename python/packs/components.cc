#include "packs/volume/kernels/components.h"

#include <pybind11/stl.h>

#include <array>
#include <vector>

#include "python/packs/bind.h"
#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/error.h"

namespace trireme::python {
namespace {

using volume::Component;
using volume::VolumeShape;

VolumeShape shape_of(const py::array& array) {
  if (array.ndim() != 3) {
    throw Error(ErrorKind::kInvalidArgument,
                "labels must have 3 dimensions, depth, height and "
                "width, have " +
                    std::to_string(array.ndim()));
  }
  return {array.shape(0), array.shape(1), array.shape(2)};
}

struct Components {
  py::array_t<std::int32_t> map;     ///< As the volume; component + 1, 0 for background.
  py::array_t<std::int32_t> labels;  ///< [N]
  py::array_t<std::int64_t> sizes;   ///< [N] voxels
  py::array_t<std::int64_t> boxes;   ///< [N, 2, 3] begin and end; z, y, x.
};

void fill(const std::vector<Component>& found, Components& made) {
  const auto count = static_cast<py::ssize_t>(found.size());
  made.labels = py::array_t<std::int32_t>(count);
  made.sizes = py::array_t<std::int64_t>(count);
  made.boxes = py::array_t<std::int64_t>({count, py::ssize_t{2}, py::ssize_t{3}});
  auto boxes = made.boxes.mutable_unchecked<3>();
  for (py::ssize_t i = 0; i < count; ++i) {
    made.labels.mutable_at(i) = found[i].label;
    made.sizes.mutable_at(i) = found[i].size;
    for (int axis = 0; axis < 3; ++axis) {
      boxes(i, 0, axis) = found[i].box.begin[axis];
      boxes(i, 1, axis) = found[i].box.end[axis];
    }
  }
}

template <typename T>
Components connected_components(const Array<T>& labels, int connectivity) {
  const VolumeShape shape = shape_of(labels);
  Components made{.map = py::array_t<std::int32_t>({shape.depth, shape.height, shape.width})};
  const T* from = labels.data();
  std::int32_t* map = made.map.mutable_data();
  const auto found = [&] {
    const py::gil_scoped_release unlocked;
    return volume::connected_components(shape, from,
                                        static_cast<volume::Connectivity>(connectivity), map,
                                        operators::internal::on_torch_threads);
  }();
  fill(found, made);
  return made;
}

using Sums = std::vector<std::array<std::int64_t, 4>>;

/// Voxels and sums of z, y and x of each label, a run of equal labels at a time.
Sums label_sums(const VolumeShape& shape, const std::int32_t* labels, std::int64_t num_labels) {
  Sums sums(num_labels);
  for (std::int64_t row = 0; row < shape.depth * shape.height; ++row) {
    const std::int32_t* line = labels + row * shape.width;
    for (std::int64_t x = 0, end = 0; x < shape.width; x = end) {
      while (end < shape.width && line[end] == line[x]) ++end;
      const std::int64_t count = end - x;
      auto& [voxels, z, y, sum_x] = sums[line[x]];
      voxels += count;
      z += row / shape.height * count;
      y += row % shape.height * count;
      sum_x += (x + end - 1) * count / 2;
    }
  }
  return sums;
}

/// [num_labels, 3] means of z, y and x; NaN where a label has no voxel.
///
/// labels   0 to num_labels - 1, which is not checked.
py::array_t<double> centroids(const Array<std::int32_t>& labels, std::int64_t num_labels) {
  const VolumeShape shape = shape_of(labels);
  const std::int32_t* from = labels.data();
  const Sums sums = [&] {
    const py::gil_scoped_release unlocked;
    return label_sums(shape, from, num_labels);
  }();
  py::array_t<double> means({static_cast<py::ssize_t>(num_labels), py::ssize_t{3}});
  auto mean = means.mutable_unchecked<2>();
  for (std::int64_t i = 0; i < num_labels; ++i) {
    for (int axis = 0; axis < 3; ++axis) {
      mean(i, axis) = static_cast<double>(sums[i][axis + 1]) / static_cast<double>(sums[i][0]);
    }
  }
  return means;
}

}  // namespace

void bind_components(py::module_& module) {
  py::class_<Components>(module, "Components")
      .def_readonly("map", &Components::map)
      .def_readonly("labels", &Components::labels)
      .def_readonly("sizes", &Components::sizes)
      .def_readonly("boxes", &Components::boxes);
  module.def("connected_components_u8", &connected_components<std::uint8_t>, py::arg("labels"),
             py::arg("connectivity"));
  module.def("connected_components_i32", &connected_components<std::int32_t>, py::arg("labels"),
             py::arg("connectivity"));
  module.def("centroids", &centroids, py::arg("labels"), py::arg("num_labels"));
}

}  // namespace trireme::python
