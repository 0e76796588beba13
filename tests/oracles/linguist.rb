# What GitHub's linguist makes of files: `ruby linguist.rb DIRECTORY < paths`, one JSON line a file:
# path, language, generated, vendored, binary.
require "json"
require "linguist"

Dir.chdir(ARGV[0])
STDIN.each_line(chomp: true) do |path|
  blob = Linguist::FileBlob.new(path, Dir.pwd)
  puts [path, blob.language&.name, blob.generated?, blob.vendored?, blob.binary?].to_json
end
