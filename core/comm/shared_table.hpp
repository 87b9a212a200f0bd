// The fingerprint exchange of ranks on one host: a small file that all of them map, about a microsecond when the peers
// are there already.
#pragma once

#include <memory>
#include <string>

#include "comm/fingerprint.hpp"

namespace ddprun::comm {

class TableMemory;  // the mapping; ranks that are threads of one process may share it

// Opens the table, or makes it if this rank is the first. `path` names a file that no other communicator of the job
// uses, in a folder that only this user can enter. It is removed once all ranks have met. Throws Error(rendezvous) when
// it cannot be made, or was made for another number of ranks.
std::shared_ptr<TableMemory> map_table(const std::string& path, int size);

// Takes the place of `rank` on the table. Throws Error(rendezvous) when it is taken. In an exchange, a peer whose
// process has ended, or which has destroyed or aborted its exchange, is named within a few hundredths of a second.
std::unique_ptr<FingerprintExchange> shared_table(std::shared_ptr<TableMemory> table, int rank);

}  // namespace ddprun::comm
