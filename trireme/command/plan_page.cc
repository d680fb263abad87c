#include "trireme/command/plan_page.h"

#include <fmt/format.h>
#include <httplib.h>

#include "trireme/command/plan_page_text.h"  // made of plan_page.html by CMakeLists.txt
#include "trireme/error.h"

namespace trireme::command {
namespace {

constexpr const char* kHere = "127.0.0.1";
constexpr const char* kJson = "application/json";

std::map<std::string, std::string> values_of(const httplib::Request& request) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : request.params) values[name] = value;
  return values;
}

/// A page of another site may not read what is planned here by a name of its own for this address.
bool is_asked_here(const httplib::Request& request) {
  const std::string host = request.get_header_value("Host");
  return host.starts_with("127.0.0.1:") || host.starts_with("localhost:");
}

void answer(const PlanPage& page, const httplib::Request& request, httplib::Response& response) {
  try {
    response.set_content(page.plan(values_of(request)).dump(), kJson);
  } catch (const std::exception& error) {
    response.status = 400;
    response.set_content(Json{{"error", error.what()}}.dump(), kJson);
  }
}

}  // namespace

void serve_plan_page(const PlanPage& page, int port,
                     const std::function<void(const std::string& address)>& listens) {
  httplib::Server server;
  server.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    response.set_header("Cache-Control", "no-store");
    if (is_asked_here(request)) return httplib::Server::HandlerResponse::Unhandled;
    response.status = 403;
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(kPlanPageText, "text/html; charset=utf-8");
  });
  server.Get("/choices", [&page](const httplib::Request&, httplib::Response& response) {
    response.set_content(page.choices.dump(), kJson);
  });
  server.Get("/plan", [&page](const httplib::Request& request, httplib::Response& response) {
    answer(page, request, response);
  });
  if (port == 0) {
    port = server.bind_to_any_port(kHere);
  } else if (!server.bind_to_port(kHere, port)) {
    port = -1;
  }
  if (port < 0) {
    throw Error(ErrorKind::kUnavailable,
                "the port is taken; give another --port, or none for any that is free");
  }
  listens(fmt::format("http://{}:{}/", kHere, port));
  server.listen_after_bind();
}

}  // namespace trireme::command
