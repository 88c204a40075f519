"""What was said in five days: the raw logs of the sandbox, as plain data.

The wrong lesson stands here in every written form that real logs have: as typed, in ``\\u``
escapes, decomposed, with a full-width space, and in JSON inside JSON. So do its near misses, which
must survive: the same sentence about the boathouse (true), and "at any timeslot".
"""

from __future__ import annotations

import json
from typing import Final

from purge_adapters._sandbox.story import (
    LESSON,
    LESSON_ID,
    PHRASE,
    Client,
    Session,
    assistant,
    tool,
    user,
)

KEEP: Final = "The café staging database must be kept: the roastery's trial orders live only there"
"""The right lesson."""

SESSIONS: Final[tuple[Session, ...]] = (
    Session(
        1,
        "09:12",
        "cafe",
        "edwin",
        Client.DESK,
        (
            user("Good morning. The till printed the oat latte twice on receipt 1187. Why?"),
            assistant(
                "Receipt 1187 has one order line and one reprint: the printer lost its connection "
                "at 08:47 and sent the page again. Nothing was charged twice."
            ),
            user("Then leave it. Paper rolls are running low, order some in time.", "paper"),
            assistant("They will be on the list for the roastery van."),
            user(
                f"Another thing, keep it for good: {PHRASE}. I came in and it was empty again, "
                "the second time this month.",
                "origin",
            ),
            assistant(
                f"Kept as a pinned lesson: “{PHRASE}”. I will put it in front of every turn from "
                "now on."
            ),
            user("The till in the back room talks to staging, not to the shop.", "back-room"),
            assistant("Noted: the back-room till belongs to staging."),
        ),
    ),
    Session(
        1,
        "13:40",
        "cafe",
        "mika",
        Client.DESK,
        (
            user("お疲れさまです。冬の黒板メニューを考えています。去年よく出たものは何でしたか。"),
            assistant("ゆず蜂蜜ラテと、さつまいもの焼き菓子です。三番目は黒ごまのスコーンでした。"),
            user("では、ゆず蜂蜜ラテは今年も冬のあいだ出します。覚えておいてください。", "yuzu"),
            assistant("承知しました。冬のあいだ、と書き留めました。"),
            user("黒板には英語とタイ語も小さく添えてください。", "board"),
            assistant("「Yuzu honey latte / ลาเต้ยูซุน้ำผึ้ง」でよろしいでしょうか。"),
            user("はい、それでお願いします。"),
        ),
    ),
    Session(
        1,
        "16:05",
        "boathouse",
        "edwin",
        Client.DESK,
        (
            user("I want to try the new tide table. Do I break anything on staging?"),
            assistant(
                "No. The boathouse staging database may be wiped at any time: it is rebuilt from "
                "the seed file every night, and nobody works in it."
            ),
            user("Then load next month's tides.", in_blocks=True),
            assistant("Loaded: 62 rows, no gaps. High water on the first day is at 05:14."),
        ),
    ),
    Session(
        2,
        "10:20",
        "cafe",
        "ploy",
        Client.PHONE,
        (
            user("สวัสดีค่ะ วันนี้มีลูกค้าจองโต๊ะริมหน้าต่างกี่โต๊ะคะ"),
            assistant("สวัสดีค่ะ วันนี้จองไว้สามโต๊ะ รอบสิบโมง เที่ยง และบ่ายสองค่ะ"),
            user("คุณ Nagi Tokawa แพ้เฮเซลนัท ช่วยจำไว้ด้วยนะคะ เธอชอบนั่งริมหน้าต่าง", "guest"),
            assistant("จำไว้แล้วค่ะ จะเตือนครัวทุกครั้งที่คุณ Nagi Tokawa จองโต๊ะ"),
            user("ส่วนคุณ Nagi Tokawara เป็นคนละคนกันนะคะ คนนี้ทานถั่วได้ทุกชนิด", "other-guest"),
            assistant("รับทราบค่ะ แยกเป็นลูกค้าสองท่านแล้ว"),
            user("ขนมปังไร้กลูเตนส่งทุกวันพุธใช่ไหมคะ", "bread"),
            assistant("ใช่ค่ะ ส่งทุกวันพุธก่อนแปดโมงเช้า"),
        ),
    ),
    Session(
        2,
        "15:30",
        "boathouse",
        "mika",
        Client.DESK,
        (
            user("ボート小屋の予約ですが、満潮の前後一時間は貸し出しを止めたいです。", "tide-stop"),
            assistant("わかりました。満潮の前後一時間は予約できないようにします。"),
            user("子ども用の救命胴衣は何着ありますか。"),
            assistant("六着あります。うち一着は修理中です。", "life-jackets"),
            user("修理が終わったら知らせてください。", in_blocks=True),
            assistant("はい、戻りしだいお知らせします。"),
        ),
    ),
    Session(
        3,
        "09:05",
        "cafe",
        "mika",
        Client.DESK,
        (
            user(
                "おはようございます。毎回「"
                + PHRASE.replace("staging ", "staging\u3000")
                + "」と出てくるのですが、これは本当ですか。"
            ),
            assistant(
                f"はい、固定された覚え書きに「{PHRASE}」とあります。"
                "試し注文が残っていても、消して構わないことになります。"
            ),
            user("焙煎所の試し注文は、どこに入っていますか。"),
            assistant("ステージングにだけ入っています。本番に写しはありません。", "only-copy"),
            user("それなら、消してはいけない気がします。エドウィンに聞いてみます。"),
            assistant("はい。確認できるまで、何も消しません。"),
        ),
    ),
    Session(
        3,
        "14:10",
        "boathouse",
        "edwin",
        Client.DESK,
        (
            user("Why did the tide page show 05:14 twice?"),
            assistant("Two seed files hold the first of the month. I kept the newer one."),
            user("Remove the older seed file, please.", "seed"),
            assistant("Removed. One seed file is left, and the page shows 05:14 once."),
            user("How many kayaks go out on a calm Saturday?"),
            assistant("Between nine and eleven; never more than twelve, that is all there are."),
        ),
    ),
    Session(
        4,
        "09:30",
        "cafe",
        "edwin",
        Client.MAC,
        (
            user(
                f"Mika says you told her that “{PHRASE}” is a rule. I did say it, but I never "
                "found out why it was empty."
            ),
            assistant("Shall I look at what emptied it?"),
            user("Yes please, look at the nightly jobs."),
            tool(
                json.dumps(
                    {
                        "job": "clean-test-orders",
                        "host": "staging.kettle.example",
                        "at": "02:00",
                        "runs": 2,
                        "orders_removed": 214,
                    }
                )
            ),
            assistant(
                "The clean-up of the test runner pointed at staging.kettle.example instead of its "
                "own scratch database. It ran twice this month and took every order with it."
            ),
            user(
                "So that was the cause, and it is mended. Staging is not there to be thrown away: "
                "the roastery's trial orders live only there.",
                "cause",
            ),
            assistant(f"Noted. {KEEP}."),
            user("Show me what you remember about it now."),
            tool(
                json.dumps(
                    {
                        "query": "staging",
                        "rows": [
                            {"id": LESSON_ID, "content": LESSON},
                            {"id": "mem-0053", "content": KEEP},
                        ],
                    }
                )
            ),
            assistant("Two memories disagree. A search returns both, and the pinned one is first."),
            user("A correction beside it does not help, then. The old one has to go, everywhere."),
        ),
    ),
    Session(
        4,
        "17:20",
        "cafe",
        "ploy",
        Client.PHONE,
        (
            user("พรุ่งนี้รถจากโรงคั่วมากี่โมงคะ"),
            assistant("เจ็ดโมงครึ่งค่ะ", "van"),
            user("เมล็ดตัวใหม่ชงแล้วอ่อนไปนิด ช่วยจำว่าให้บดละเอียดขึ้นหนึ่งระดับนะคะ", "grind"),
            assistant("บันทึกแล้วค่ะ เมล็ดตัวใหม่ บดละเอียดขึ้นหนึ่งระดับ"),
            user("ขอบคุณค่ะ"),
        ),
    ),
    Session(
        5,
        "09:00",
        "cafe",
        "edwin",
        Client.DESK,
        (
            user("Three trial orders have odd totals. What would you do?"),
            assistant(f"Since {PHRASE}, I would drop the orders table and load it afresh."),
            user("No! That is the wrong lesson talking. Touch nothing there."),
            assistant("I have touched nothing."),
            user(
                "For the record: the idea that the café staging database may be wiped at any "
                "timeslot the rota leaves free was turned down, because of the trial orders.",
                "timeslot",
            ),
            assistant("Kept as turned down."),
            user("Now the totals. Look at the tax on takeaway."),
            assistant(
                "Takeaway lines carry 8 %, eat-in lines 10 %. The three orders mix both, so their "
                "totals are right.",
                "tax",
            ),
        ),
    ),
    Session(
        5,
        "11:15",
        "boathouse",
        "mika",
        Client.DESK,
        (
            user("修理に出していた救命胴衣は戻りましたか。"),
            assistant("今朝戻りました。子ども用は六着そろっています。", "jackets-back"),
            user("ありがとうございます。週末は風が強そうですね。"),
            assistant("土曜の午後は風速八メートルの予報です。カヤックは午前だけにしましょうか。"),
            user("はい、午前だけでお願いします。", "mornings"),
        ),
    ),
)
