#include "trireme/wire/transport/announcement.h"

#include <unistd.h>

#include <array>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/wire/transport/poller.h"
#include "trireme/wire/transport/shm/local_socket.h"
#include "trireme/wire/transport/thread.h"

namespace trireme::transport {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string name_of_job(const std::string& job_id) {
  return "trireme/" + std::to_string(::getuid()) + "/" + job_id.substr(0, 64);
}

/// One packet from a process of this user; empty where there is none.
std::string ask(const std::string& name, Deadline deadline) {
  const Descriptor socket = internal::try_connect_locally(name);
  if (!socket.is_open() || !internal::is_of_this_user(socket)) return "";
  std::array<std::byte, 512> text{};
  if (!wait_readable(socket, deadline)) return "";
  const std::size_t count = read_some(socket, text).value_or(0);
  return {reinterpret_cast<const char*>(text.data()), count};
}

}  // namespace

class Announcement::Service {
 public:
  Service(const std::string& job_id, std::string text)
      : text_(std::move(text)),
        listener_(internal::listen_locally(name_of_job(job_id))),
        thread_("announcement", [this] { serve(); }) {}

  ~Service() {
    poller_.post([this] { is_stopping_ = true; });
    thread_.join();
  }

 private:
  void serve() {
    try {
      poller_.add(listener_, 1);
      while (!is_stopping_) {
        if (!poller_.wait(Clock::now() + std::chrono::hours(1)).empty()) tell();
      }
    } catch (const std::exception&) {  // who asks finds nobody, and says so at its deadline
      listener_.reset();
    }
  }

  void tell() {
    try {
      const auto socket = accept_from(listener_);
      if (!socket || !internal::is_of_this_user(*socket)) return;
      write_some(*socket, std::as_bytes(std::span(text_)));
    } catch (const Error&) {  // it has gone, or there is no descriptor for it: it asks again
      std::this_thread::sleep_for(milliseconds(20));
    }
  }

  const std::string text_;
  Descriptor listener_;
  Poller poller_;
  bool is_stopping_ = false;
  LibraryThread thread_;
};

Announcement::Announcement(const std::string& job_id, const std::string& text)
    : service_(std::make_unique<Service>(job_id, text)) {}

Announcement::~Announcement() = default;

std::string find_announcement(const std::string& job_id, Deadline deadline) {
  while (true) {
    const Deadline look = std::min(deadline, Clock::now() + milliseconds(500));
    if (std::string text = ask(name_of_job(job_id), look); !text.empty()) return text;
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(milliseconds(10));
  }
  throw Error(ErrorKind::kTimeout, "rank 0 of job '" + job_id +
                                       "' has not said on this host where the store is; was it "
                                       "started here? Else set TRIREME_STORE=HOST:PORT");
}

}  // namespace trireme::transport
