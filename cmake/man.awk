# Turns the help of a ddprun program into a manual page. Variables: name (ddprun-bench), version.
function end_text() { if (in_text) print ".fi"; in_text = 0 }
{ gsub(/\\/, "\\e"); gsub(/-/, "\\-") }
NR == 1 {
  print ".TH " toupper(name) " 1 \"\" \"ddprun " version "\" \"User Commands\""
  print ".SH NAME\n" name " \\- " $0
  next
}
/^$/ { next }
/^Usage: / { print ".SH SYNOPSIS\n.B " substr($0, 8); next }
/^[A-Z][a-z ]*:$/ { end_text(); section = substr($0, 1, length($0) - 1); print ".SH " toupper(section); next }
/^[^ ]/ && section != "NOTES" { end_text(); section = "NOTES"; print ".SH NOTES" }
section != "NOTES" && /^  [^ ]/ {
  line = substr($0, 3)
  about = ""
  if (match(line, /  +/)) { about = substr(line, RSTART + RLENGTH); line = substr(line, 1, RSTART - 1) }
  print ".TP\n.B " line
  if (about != "") print about
  next
}
section != "NOTES" { sub(/^ +/, ""); print; next }
{
  if (!in_text) print ".nf"
  in_text = 1
  print "\\&" $0
}
END { end_text() }
