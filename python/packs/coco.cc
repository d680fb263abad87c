#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "packs/vision/coco/evaluate.h"
#include "packs/vision/coco/paste.h"
#include "packs/vision/coco/rle.h"
#include "python/packs/bind.h"
#include "trireme/engine/operators/kernel_operator.h"

namespace trireme::python {
namespace {

using vision::CocoDetections;
using vision::CocoGroundTruth;
using vision::CocoKind;

CocoKind kind_of(bool has_masks) { return has_masks ? CocoKind::kMask : CocoKind::kBox; }

CocoDetections detections_of_rows(const Array<double>& rows, const CocoGroundTruth& truth) {
  const auto numbers = elements(rows);
  const py::gil_scoped_release unlocked;
  return vision::make_detections(numbers, truth);
}

/// Compressed counts of pixels [height, width].
std::string runs_of_pixels(const Array<std::uint8_t>& pixels) {
  if (pixels.ndim() != 2) throw py::value_error("expected pixels [height, width]");
  return vision::to_text(vision::from_pixels({pixels.shape(0), pixels.shape(1)}, elements(pixels)));
}

using Size = std::tuple<std::int64_t, std::int64_t>;  // height, width

/// The same of a soft mask [side, side] of a box (x1, y1, x2, y2), in an image of a size.
std::string runs_of_soft_mask(const Array<float>& values,
                              std::tuple<float, float, float, float> box, Size size) {
  if (values.ndim() != 2) throw py::value_error("expected a mask [side, side]");
  const auto [height, width] = size;
  const auto [left, top, right, bottom] = box;
  return vision::to_text(vision::paste({height, width}, {.values = elements(values),
                                                         .side = values.shape(0),
                                                         .left = left,
                                                         .top = top,
                                                         .right = right,
                                                         .bottom = bottom}));
}

std::int64_t area_of_runs(const std::string& counts, Size size) {
  const auto [height, width] = size;
  return vision::area(vision::parse_rle({height, width}, counts));
}

/// Precision [K, A, M, T, R] and recall [K, A, M, T].
std::tuple<py::array_t<double>, py::array_t<double>> evaluate(const CocoGroundTruth& truth,
                                                              const CocoDetections& detections,
                                                              bool of_masks,
                                                              std::tuple<int, int, int> limits) {
  const auto [first, second, third] = limits;
  const std::array<int, 3> max_dets = {first, second, third};
  const auto curves = [&] {
    const py::gil_scoped_release unlocked;
    return vision::evaluate_coco(truth, detections,
                                 {.kind = kind_of(of_masks),
                                  .max_dets = max_dets,
                                  .spread = operators::internal::on_torch_threads});
  }();
  using Curves = vision::CocoCurves;
  const py::ssize_t num_categories = curves.num_categories();
  const std::vector<py::ssize_t> rows = {num_categories, Curves::kAreas, Curves::kLimits,
                                         Curves::kIous};
  auto all = rows;
  all.push_back(Curves::kRecalls);
  return {py::array_t<double>(all, curves.precision.data()),
          py::array_t<double>(rows, curves.recall.data())};
}

}  // namespace

void bind_coco(py::module_& module) {
  py::class_<CocoGroundTruth>(module, "CocoGroundTruth")
      .def(py::init([](const std::string& json, bool has_masks, const std::string& origin) {
             return vision::parse_ground_truth(json, kind_of(has_masks), origin);
           }),
           py::arg("json"), py::arg("has_masks"), py::arg("origin"), Unlocked())
      .def_property_readonly("num_images", &CocoGroundTruth::num_images)
      .def_property_readonly("num_categories", &CocoGroundTruth::num_categories);
  py::class_<CocoDetections>(module, "CocoDetections")
      .def(py::init([](const std::string& json, bool has_masks, const CocoGroundTruth& truth,
                       const std::string& origin) {
             return vision::parse_detections(json, kind_of(has_masks), truth, origin);
           }),
           py::arg("json"), py::arg("has_masks"), py::arg("truth"), py::arg("origin"), Unlocked())
      .def_static("of_rows", &detections_of_rows, py::arg("rows"), py::arg("truth"))
      .def("__len__", &CocoDetections::size);
  module.def("area_of_runs", &area_of_runs, py::arg("counts"), py::arg("size"), Unlocked());
  module.def("runs_of_pixels", &runs_of_pixels, py::arg("pixels"), Unlocked());
  module.def("runs_of_soft_mask", &runs_of_soft_mask, py::arg("values"), py::arg("box"),
             py::arg("size"), Unlocked());
  module.def("evaluate_coco", &evaluate, py::arg("truth"), py::arg("detections"),
             py::arg("of_masks"), py::arg("max_dets"));
}

}  // namespace trireme::python
