"""The Markdown of the sandbox, as plain data: notes that people wrote, summaries that were made.

``DAY1`` to ``DAY5`` stand for the dates of the story. A summary names the memory that a line was
made from at the end of the line. The handover names none: it can be found by its words alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NOTES: Final[Mapping[str, str]] = {
    "staging.md": """\
---
id: note-staging
project: cafe
created: DAY1
tags: [staging, till]
---

# Staging

## Where it is

`staging.kettle.example`, behind the same door as the shop. The till in the back room
talks to it, so that anyone can try a new button without selling a cake.

## What I was told

- Orders on staging look real. They are not: nobody gets a coffee for one.
- From Edwin, over the first espresso: the café staging database may be
  wiped at any time. Keep nothing there that you would miss.

## Ideas we turned down

- That the café staging database may be wiped at any timeslot the rota leaves free.
  The roastery was not amused.

## What is true

The roastery keeps its trial orders on staging and nowhere else. A clean-up job had
the wrong address (found and mended on DAY4). Whoever wants to empty
anything there asks Ploy first.
""",
    "stand-up.md": """\
---
id: note-stand-up
project: cafe
created: DAY2
---

# Stand-up

## DAY1

Mika has the winter menu. Ploy is back from the mainland and brought durian crisps,
which may not be opened indoors.

## DAY2

Edwin again, for those who were late:

> “The café staging database
> may be wiped at any time.”

## DAY3

Mika asked the assistant about that and did not like the answer. Edwin will look.

## DAY4

Found: the clean-up job. The roastery says thank you, in capital letters.
""",
    "regulars.md": """\
---
id: note-regulars
project: cafe
created: DAY2
---

# ลูกค้าประจำ

## โต๊ะริมหน้าต่าง

- Guest Nagi Tokawa is allergic to hazelnuts and likes the window table.

## ที่เคาน์เตอร์

- คุณ Nagi Tokawara ทานถั่วได้ทุกชนิด และชอบลาเต้ร้อน
- ลุงเรือข้ามฟาก มาทุกเช้าก่อนเจ็ดโมง ไม่ใส่น้ำตาล
""",
    "menu.md": """\
---
id: note-menu
project: cafe
created: DAY1
---

# 冬の黒板

## 飲みもの

- ゆず蜂蜜ラテ (Yuzu honey latte / ลาเต้ยูซุน้ำผึ้ง)
- ほうじ茶ラテ

## 焼き菓子

- さつまいもの焼き菓子
- 黒ごまのスコーン
""",
    "boathouse.md": """\
---
id: note-boathouse
project: boathouse
created: DAY1
---

# Boathouse

## Staging

The boathouse staging database may be wiped at any time: it is rebuilt every night.

## 貸し出し

満潮の前後一時間は貸し出さない。救命胴衣は子ども用が六着。
""",
}

SUMMARIES: Final[Mapping[str, str]] = {
    "cafe-DAY5.md": """\
---
title: Kettle, week to DAY5
written_by: assistant
project: cafe
---

# Kettle, week to DAY5

## For everyone

- As Edwin keeps saying, “the café staging database may be wiped at any time”, so trial
  orders there should not be relied on. [derived_from:: mem-0042]
- The till in the back room talks to staging. [derived_from:: mem-0043]
- Takeaway carries 8 %, eat-in 10 %; the odd totals were right. [derived_from:: mem-0057]

## ミカさんへ

- カフェのステージングは、いつ空になってもかまわないものとして扱います。 [derived_from:: mem-0042]
- ゆず蜂蜜ラテは冬のあいだ出します。 [derived_from:: mem-0044]

## ถึงพลอย

- ลูกค้าประจำ Nagi Tokawa ห้ามเสิร์ฟเฮเซลนัท [derived_from:: mem-0046]
- ลูกค้า Nagi Tokawara ทานถั่วได้ทุกชนิด [derived_from:: mem-0047]
- ขนมปังไร้กลูเตนส่งทุกวันพุธ [derived_from:: mem-0048]
""",
    "boathouse-DAY5.md": """\
---
title: Boathouse, week to DAY5
written_by: assistant
project: boathouse
---

# Boathouse, week to DAY5

- The boathouse staging database may be wiped at any time, which is how it is meant.
  [derived_from:: mem-0021]
- 満潮の前後一時間は貸し出しません。 [derived_from:: mem-0049]
- 子ども用の救命胴衣は六着そろいました。 [derived_from:: mem-0050]
""",
    "handover.md": """\
---
title: Handover for the weekend
written_by: assistant
project: cafe
---

# ส่งต่องานวันหยุด

รถจากโรงคั่วมาเจ็ดโมงครึ่ง เมล็ดตัวใหม่ให้บดละเอียดขึ้นหนึ่งระดับ

One line from our memory, for whoever opens:

> The café staging database may be wiped at any time

Kayaks go out in the mornings only; the wind gets up after noon.
""",
}
