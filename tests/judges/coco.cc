#include <algorithm>
#include <string>
#include <vector>

#include "packs/vision/coco/evaluate.h"
#include "packs/vision/coco/mask_list.h"
#include "packs/vision/coco/paste.h"
#include "packs/vision/coco/polygon.h"
#include "packs/vision/coco/summary.h"
#include "tests/judges/judge.h"

namespace trireme::judges {
namespace {

using vision::Rle;

void add(Tensors& outputs, const std::string& name, std::vector<std::int64_t> shape,
         const std::vector<double>& values) {
  std::ranges::copy(values, outputs.add<double>(name, std::move(shape)).begin());
}

/// Compressed masks, each ended by a newline.
void add_masks(Tensors& outputs, const std::string& name, const std::vector<Rle>& masks) {
  std::string text;
  for (const Rle& mask : masks) text += to_text(mask) + "\n";
  std::ranges::copy(text, outputs.add<std::uint8_t>(name, {std::ssize(text)}).begin());
}

/// sizes [n][2], and their compressed counts as `add_masks` writes them.
std::vector<Rle> masks_of(const Tensors& inputs, const std::string& name) {
  const auto sizes = inputs.get<std::int64_t>(name + "_sizes");
  const auto bytes = inputs.get<std::uint8_t>(name);
  std::vector<Rle> masks;
  auto begin = bytes.begin();
  for (std::size_t i = 0; i < sizes.size(); i += 2) {
    const auto end = std::find(begin, bytes.end(), '\n');
    masks.push_back(vision::parse_rle({sizes[i], sizes[i + 1]}, std::string(begin, end)));
    begin = end + 1;
  }
  return masks;
}

/// Options: the files annotations and results (or the tensor rows [n][7]), kind, limits a tensor.
Tensors coco(const Tensors& inputs) {
  const auto kind =
      inputs.options.at("kind") == "mask" ? vision::CocoKind::kMask : vision::CocoKind::kBox;
  const auto truth = vision::read_ground_truth(inputs.options.at("annotations"), kind);
  const auto detections = inputs.has("rows")
                              ? vision::make_detections(inputs.get<double>("rows"), truth)
                              : vision::read_detections(inputs.options.at("results"), kind, truth);
  vision::CocoOptions options{.kind = kind, .spread = kernels::on_threads(2)};
  std::ranges::copy(inputs.get<std::int64_t>("limits"), options.max_dets.begin());
  const auto curves = evaluate_coco(truth, detections, options);
  const auto summary = summarize(curves);
  Tensors outputs;
  using Curves = vision::CocoCurves;
  const std::int64_t num_categories = curves.num_categories();
  add(outputs, "precision",
      {num_categories, Curves::kAreas, Curves::kLimits, Curves::kIous, Curves::kRecalls},
      curves.precision);
  add(outputs, "recall", {num_categories, Curves::kAreas, Curves::kLimits, Curves::kIous},
      curves.recall);
  add(outputs, "stats", {12}, {summary.stats.begin(), summary.stats.end()});
  add(outputs, "category_ap", {num_categories}, summary.category_ap);
  const std::string table = to_table(summary, curves);
  std::ranges::copy(table, outputs.add<std::uint8_t>("table", {std::ssize(table)}).begin());
  return outputs;
}

/// sizes [n][2], lengths [n], xy -> masks of polygons; boxes [n][4] -> masks of boxes.
Tensors coco_shapes(const Tensors& inputs) {
  const auto sizes = inputs.get<std::int64_t>("sizes");
  const auto lengths = inputs.get<std::int64_t>("lengths");
  const auto xy = inputs.get<double>("xy");
  const auto boxes = inputs.get<double>("boxes");
  std::vector<Rle> polygons, of_boxes;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const vision::ImageSize size{sizes[2 * i], sizes[2 * i + 1]};
    polygons.push_back(vision::from_polygon(size, xy.subspan(begin, lengths[i])));
    of_boxes.push_back(vision::from_box(
        size, {boxes[4 * i], boxes[4 * i + 1], boxes[4 * i + 2], boxes[4 * i + 3]}));
    begin += lengths[i];
  }
  Tensors outputs;
  add_masks(outputs, "polygons", polygons);
  add_masks(outputs, "boxes", of_boxes);
  return outputs;
}

/// a, b: masks; is_crowd of b.
Tensors coco_masks(const Tensors& inputs) {
  const std::vector<Rle> a = masks_of(inputs, "a"), b = masks_of(inputs, "b");
  Tensors outputs;
  std::vector<double> areas, boxes;
  std::vector<Rle> again;
  for (const Rle& mask : a) {
    areas.push_back(static_cast<double>(area(mask)));
    const vision::Box box = bounding_box(mask);
    boxes.insert(boxes.end(), {box.x, box.y, box.width, box.height});
    again.push_back(from_pixels(mask.size, to_pixels(mask)));
  }
  add(outputs, "areas", {std::ssize(a)}, areas);
  add(outputs, "boxes", {std::ssize(a), 4}, boxes);
  add(outputs, "iou", {std::ssize(a), std::ssize(b)},
      iou(a, b, inputs.get<std::uint8_t>("is_crowd")));
  add_masks(outputs, "again", again);
  add_masks(outputs, "union", {vision::union_of(a)});
  add_masks(outputs, "intersection", {vision::intersection_of(a)});
  return outputs;
}

/// masks [n][side][side], boxes [n][4] of corners, image [2] -> their masks of the image.
Tensors coco_paste(const Tensors& inputs) {
  const auto values = inputs.get<float>("masks");
  const auto boxes = inputs.get<float>("boxes");
  const auto image = inputs.get<std::int64_t>("image");
  const std::int64_t side = inputs.at("masks").shape[1];
  std::vector<Rle> pasted;
  for (std::size_t i = 0; i < boxes.size() / 4; ++i) {
    pasted.push_back(
        vision::paste({image[0], image[1]}, {.values = values.subspan(i * side * side, side * side),
                                             .side = side,
                                             .left = boxes[4 * i],
                                             .top = boxes[4 * i + 1],
                                             .right = boxes[4 * i + 2],
                                             .bottom = boxes[4 * i + 3]}));
  }
  Tensors outputs;
  add_masks(outputs, "pasted", pasted);
  return outputs;
}

}  // namespace

void add_coco(Operations& operations) {
  operations["coco"] = coco;
  operations["coco_shapes"] = coco_shapes;
  operations["coco_masks"] = coco_masks;
  operations["coco_paste"] = coco_paste;
}

}  // namespace trireme::judges
