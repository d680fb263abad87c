#include "trireme/data/own_process.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace trireme::data {
namespace {

constexpr std::size_t kMarkBytes = 1;  // of which the system makes a page

}  // namespace

OwnProcess::OwnProcess() : id_(::getpid()) {
  void* page =
      ::mmap(nullptr, kMarkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (::madvise(page, kMarkBytes, MADV_WIPEONFORK) != 0) {
    ::munmap(page, kMarkBytes);
    return;
  }
  auto* mark = static_cast<unsigned char*>(page);
  *mark = 1;
  page_ = mark;
}

OwnProcess::~OwnProcess() {
  if (page_ != nullptr) ::munmap(const_cast<unsigned char*>(page_), kMarkBytes);
}

bool OwnProcess::is_here() const { return page_ != nullptr ? *page_ != 0 : ::getpid() == id_; }

}  // namespace trireme::data
