// The one function that this library shows.
#include <exception>
#include <new>

#include "trireme/data/arrow/ipc_file.h"
#include "trireme/data/arrow/parquet_file.h"
#include "trireme/data/table_file.h"

namespace trireme::data {
namespace {

class ArrowLibrary : public TableLibrary {
 public:
  std::unique_ptr<const TableFile> open(TableForm form, int descriptor) const override {
    return form == TableForm::kParquet ? open_parquet(descriptor) : open_ipc(descriptor);
  }
};

}  // namespace
}  // namespace trireme::data

extern "C" const trireme::data::TableLibrary* trireme_table_library_1() {
  static const trireme::data::ArrowLibrary kLibrary;
  return &kLibrary;
}
