#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "packs/vision/coco/rle.h"
#include "trireme/base/json.h"
#include "trireme/base/json_field.h"

namespace trireme::vision::internal {

/// What a mask lies in.
struct Image {
  std::int64_t id = 0;
  ImageSize size;  ///< 0 x 0 where the file does not say.
};

/// An object of a COCO file's lists. Its readers throw kCorruptData, with its place: `results.json
/// item 17`. The text of the place is made only then, since there are many items.
class Item {
 public:
  /// kCorruptData where it is no object.
  Item(const Json& json, std::string_view list, std::int64_t index);

  /// The value under a name, or null where there is none.
  const Json* find(const char* name) const;

  std::int64_t integer(const char* name) const;
  double number(const char* name) const;           ///< Finite.
  std::optional<Box> box(const char* name) const;  ///< Nothing where it is missing or [].

  /// What COCO allows under `segmentation`: a list of polygons (or of boxes, where the first has
  /// four numbers), or an object with `size` and `counts`, a list or compressed. Nothing where it
  /// is missing.
  std::optional<Rle> mask(const char* name, const Image& image) const;

  /// The pixels of a box of this item.
  Rle mask_of_box(const Box& box, const Image& image) const;

  [[noreturn]] void fail(const std::string& problem) const;

 private:
  JsonField field(const char* name) const;

  /// What `make` makes; its errors get this item's place.
  template <typename Make>
  Rle make_mask(const Image& image, const Make& make) const;

  const Json* json_;
  std::string_view list_;
  std::int64_t index_;
};

/// Calls `visit` for each element of the list that a JSON text is, one in memory at a time.
///
/// Errors   kCorruptData where the text is no JSON, naming the element before the mistake, or no
///          list.
void for_each_item(std::string_view text, std::string_view origin,
                   const std::function<void(const Item& item)>& visit);

}  // namespace trireme::vision::internal
