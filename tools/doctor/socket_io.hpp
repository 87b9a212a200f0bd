// TCP sockets with deadlines. Except for path_mtu(), a function that returns int returns 0 or an errno: ETIMEDOUT at
// the deadline, ECONNRESET if the peer has closed the connection early. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/unique_fd.hpp"

namespace ddprun::doctor {

using Clock = std::chrono::steady_clock;

// Waits for `events` of poll() on a descriptor.
int wait_for(int fd, short events, Clock::time_point deadline);

// Sockets are non-blocking. `address` is numeric, IPv4 or IPv6.
int connect_to(const std::string& address, int port, Clock::time_point deadline, UniqueFd& socket);
// `port` 0: any free one; returns the port in it.
int listen_on(const std::string& address, int& port, UniqueFd& socket);
void send_at_once(int fd);  // TCP_NODELAY

int send_all(int fd, const void* data, std::size_t bytes, Clock::time_point deadline);
int receive_all(int fd, void* data, std::size_t bytes, Clock::time_point deadline);

// The address of this end.
std::string local_address(int fd);
// In bytes; -1 if it is not known.
int path_mtu(int fd);

}  // namespace ddprun::doctor
