-- kprof's database, version 5: for whom a call of a part was made. Programs that know how processes are numbered (message_process in
-- include/model/message.h) put the parts of a request together by it, as kprof slow does.

ALTER TABLE kept_spans ADD COLUMN caller INTEGER;  -- the process that its token came from, of another node; NULL: none, or not known
