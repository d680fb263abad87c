#include "trireme/base/device.h"

#include <charconv>
#include <optional>

#include "trireme/base/cuda/stream.h"
#include "trireme/error.h"

namespace trireme {
namespace {

constexpr std::string_view kCudaName = "cuda";

/// The number that is all of `text`.
std::optional<int> parse_index(std::string_view text) {
  int value = 0;
  const char* last = text.data() + text.size();
  const auto [end, status] = std::from_chars(text.data(), last, value);
  if (status != std::errc{} || end != last || value < 0) return std::nullopt;
  return value;
}

class CpuStream : public Stream {
 public:
  Device device() const override { return {}; }
  void run_after(const Event& event) override { event.wait(); }
  void wait() override {}
};

class CpuEvent : public Event {
 public:
  Device device() const override { return {}; }
  void record(Stream& stream) override {
    if (stream.device() != device()) {
      throw Error(ErrorKind::kInvalidArgument,
                  "an event of device cpu cannot mark a stream of " + to_text(stream.device()));
    }
    time_ = std::chrono::steady_clock::now();
  }
  bool is_done() const override { return true; }
  void wait() const override {}
  std::chrono::nanoseconds since(const Event& earlier) const override {
    const auto* other = dynamic_cast<const CpuEvent*>(&earlier);
    if (other == nullptr || !time_ || !other->time_) {
      throw Error(ErrorKind::kInvalidArgument,
                  "time between events: both must be recorded, and both of device cpu");
    }
    return *time_ - *other->time_;
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> time_;
};

}  // namespace

std::string to_text(const Device& device) {
  if (device.kind == DeviceKind::kCpu) return "cpu";
  return std::string(kCudaName) + ":" + std::to_string(device.index);
}

Device parse_device(std::string_view text) {
  if (text == "cpu") return {};
  if (text == kCudaName) return {DeviceKind::kCuda, 0};
  if (text.starts_with(kCudaName) && text.substr(kCudaName.size()).starts_with(":")) {
    const std::optional<int> index = parse_index(text.substr(kCudaName.size() + 1));
    if (index) return {DeviceKind::kCuda, *index};
  }
  throw Error(ErrorKind::kInvalidArgument,
              "'" + std::string(text) + "' is not a device; expected cpu or cuda:<index>");
}

std::unique_ptr<Stream> make_stream(const Device& device) {
  if (device.kind == DeviceKind::kCuda) return cuda::make_stream(device.index);
  return std::make_unique<CpuStream>();
}

std::unique_ptr<Event> make_event(const Device& device) {
  if (device.kind == DeviceKind::kCuda) return cuda::make_event(device.index);
  return std::make_unique<CpuEvent>();
}

}  // namespace trireme
